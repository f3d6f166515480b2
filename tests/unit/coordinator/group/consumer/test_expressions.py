"""Which expressions are taken, and what they match."""

from __future__ import annotations

import subprocess
import sys

import pytest

from coordinator.group.consumer.errors import Refused
from coordinator.group.consumer.expressions import compile_regex
from protocol.errors import ErrorCode as E


@pytest.mark.parametrize(
    "regex", ["(", "[", "*", "(?!x)", "(?<=x)", r"(a)\1", "(?P<n", "a{1000}{1000}{1000}"]
)
def test_what_re2_does_not_know(regex: str) -> None:
    with pytest.raises(Refused) as refused:
        compile_regex(regex)
    assert refused.value.error is E.INVALID_REGULAR_EXPRESSION
    assert regex in refused.value.text


def test_expressions_that_others_would_take_ages_for_are_linear_here() -> None:
    assert compile_regex("(a+)+b").fullmatch("a" * 2000) is None


def test_names_match_as_a_whole() -> None:
    pattern = compile_regex("t|ta.*")
    assert [name for name in ("t", "ta", "tab", "xt", "tx") if pattern.fullmatch(name)] == ["t", "ta", "tab"]


def test_who_lists_transactions_does_not_import_the_group_coordinator() -> None:
    program = "import broker.handlers.list_transactions, sys; print('coordinator.group.shard' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

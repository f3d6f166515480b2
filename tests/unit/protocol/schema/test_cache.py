"""Messages are made once, and only when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from protocol.schema.cache import definition, message_class
from tests.support.toy_messages import toy


def test_a_class_is_made_once() -> None:
    assert message_class("FetchRequest") is message_class("FetchRequest")
    assert definition("FetchRequest") is definition("FetchRequest")


def test_an_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        message_class("NoSuchRequest")


def test_codecs_are_compiled_for_the_versions_that_are_used() -> None:
    made = toy("data Toy versions 0-3\n  A: int8")
    assert not made._decoders
    made.decode(2, made(a=1).encode(1))
    assert list(made._encoders) == [1]
    assert list(made._decoders) == [2]


def test_importing_the_messages_reads_no_definition() -> None:
    code = (
        "import sys; from protocol import messages as m; "
        "before = [n for n in sys.modules if n.startswith('protocol.schema.defs.')]; "
        "m.FetchRequest; "
        "print(before, [n for n in sys.modules if n.startswith('protocol.schema.defs.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] ['protocol.schema.defs.produce_fetch']"

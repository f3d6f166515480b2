"""What the tools share."""

from __future__ import annotations

import pytest

from ottla.cli import options
from ottla.cli.options import ToolFailed


def test_properties_of_a_file_are_overridden_by_options(tmp_path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# comment\nclient.id = a\nkey.separator=\\:\n")
    assert options.properties_of(path, ("client.id=b=c",)) == {"client.id": "b=c", "key.separator": ":"}
    assert options.properties_of(None, ()) == {}


@pytest.mark.parametrize("pair", ["nothing", "=value"])
def test_an_option_that_is_no_pair_is_refused(pair) -> None:
    with pytest.raises(ToolFailed, match=pair):
        options.properties_of(None, (pair,))


def test_a_missing_file_is_named(tmp_path) -> None:
    with pytest.raises(ToolFailed, match="missing"):
        options.read_properties(tmp_path / "missing")


def test_a_demand_for_protection_is_refused_and_not_dropped() -> None:
    with pytest.raises(ToolFailed, match=r"SASL_SSL.*PLAINTEXT only"):
        options.connect("127.0.0.1:1", {"security.protocol": "sasl_ssl"})


def test_a_broker_that_is_not_there_is_named() -> None:
    with pytest.raises(ToolFailed, match=r"127\.0\.0\.1:1 .*is it running"):
        options.connect("127.0.0.1:1")


def test_a_pattern_is_for_the_whole_name_and_commas_mean_or() -> None:
    assert options.topic_pattern("a.*").fullmatch("a-1")
    assert not options.topic_pattern("a").fullmatch("ab")
    assert options.topic_pattern("'a, b'").fullmatch("b")
    with pytest.raises(ToolFailed, match="invalid regex"):
        options.topic_pattern("a(")


def test_true_is_true_in_any_case_and_nothing_else_is() -> None:
    assert options.is_true({"a": "TRUE"}, "a")
    assert not options.is_true({"a": "yes"}, "a", default=True)
    assert options.is_true({}, "a", default=True)


def test_a_number_that_is_none_is_refused_with_its_name() -> None:
    assert options.number("30", "request.timeout.ms") == 30
    with pytest.raises(ToolFailed, match=r"request\.timeout\.ms takes a number, not 'x'"):
        options.number("x", "request.timeout.ms")

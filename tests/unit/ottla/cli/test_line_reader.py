"""How the console producer makes records of lines. That Kafka's does the same is tests/tools' business."""

from __future__ import annotations

import pytest

from ottla.cli.line_reader import LineReader
from ottla.cli.options import ToolFailed
from protocol.records.batch import Record


def record(line: bytes, **properties: str) -> Record:
    return LineReader({key.replace("_", "."): value for key, value in properties.items()}).record(line, 5)


def test_a_line_is_a_value() -> None:
    assert record(b"a\tb") == Record(0, 5, None, b"a\tb")
    assert record(b"") == Record(0, 5, None, b"")


def test_the_first_separator_ends_the_key() -> None:
    assert record(b"k\tv\tw", parse_key="true") == Record(0, 5, b"k", b"v\tw")
    assert record(b"k::v", parse_key="TRUE", key_separator="::") == Record(0, 5, b"k", b"v")
    assert record(b"\tv", parse_key="true") == Record(0, 5, b"", b"v")


def test_headers_stand_before_the_key() -> None:
    made = record(b"a:1,b:\tk\tv", parse_key="true", parse_headers="true")
    assert made == Record(0, 5, b"k", b"v", (("a", b"1"), ("b", b"")))


def test_the_null_marker_stands_for_no_headers_no_key_no_value() -> None:
    options = {"parse_key": "true", "parse_headers": "true", "null_marker": "NULL"}
    assert record(b"NULL\tNULL\tNULL", **options) == Record(0, 5, None, None)
    assert record(b"a:NULL\tk\tv", **options) == Record(0, 5, b"k", b"v", (("a", None),))
    with pytest.raises(ToolFailed, match="null marker"):
        record(b"NULL:1\tk\tv", **options)


def test_a_line_without_what_it_must_have_is_named() -> None:
    reader = LineReader({"parse.key": "true"})
    reader.record(b"k\tv")
    with pytest.raises(ToolFailed, match="No key separator found on line number 2: 'nokey'"):
        reader.record(b"nokey")
    with pytest.raises(ToolFailed, match="No headers delimiter found on line number 1: 'x'"):
        record(b"x", parse_headers="true")
    with pytest.raises(ToolFailed, match="No header key separator found in pair 'bad' on line number 1"):
        record(b"bad\tv", parse_headers="true")


def test_such_a_line_can_be_a_value_instead() -> None:
    assert record(b"nokey", parse_key="true", ignore_error="true") == Record(0, 5, None, b"nokey")
    made = record(b"bad\tv", parse_headers="true", ignore_error="true")
    assert made == Record(0, 5, None, b"v", (("bad", None),))


def test_separators_that_could_not_be_told_apart_are_refused() -> None:
    with pytest.raises(ToolFailed, match="may not be equal"):
        LineReader({"parse.headers": "true", "headers.delimiter": ","})
    with pytest.raises(ToolFailed, match="may not be equal"):
        LineReader({"parse.headers": "true", "headers.key.separator": ","})

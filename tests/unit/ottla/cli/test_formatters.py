"""How the console consumer writes records. That Kafka's prints the same is tests/tools' business."""

from __future__ import annotations

import struct

import pytest

from ottla.cli.formatters import DefaultFormatter, deserializer, formatter
from ottla.cli.options import ToolFailed
from ottla.reader import Received
from protocol.records.batch import Record

RECORD = Received("t", 3, Record(41, 1700, b"key", b"value", (("h", b"1"), ("n", None))), "CreateTime")
NULLS = Received("t", 0, Record(0, -1, None, None), "NoTimestampType")


def shown(*fields: str, **more: str) -> dict[str, str]:
    return {f"print.{field}": "true" for field in fields} | {
        key.replace("_", "."): value for key, value in more.items()
    }


def test_by_default_only_the_value_is_printed() -> None:
    assert DefaultFormatter({})(RECORD) == b"value\n"
    assert DefaultFormatter({})(NULLS) == b"null\n"


def test_fields_come_in_kafkas_order_whatever_order_they_are_asked_in() -> None:
    form = DefaultFormatter(shown("key", "headers", "offset", "partition", "timestamp", "epoch"))
    assert form(RECORD) == (
        b"CreateTime:1700\tPartition:3\tOffset:41\tEpoch:NOT_PRESENT\th:1,n:null\tkey\tvalue\n"
    )
    assert form(NULLS) == b"NO_TIMESTAMP\tPartition:0\tOffset:0\tEpoch:NOT_PRESENT\tNO_HEADERS\tnull\tnull\n"


def test_separators_and_the_word_for_null_can_be_chosen() -> None:
    form = DefaultFormatter(
        shown(
            "key", "headers", key_separator="|", line_separator=";", headers_separator="/", null_literal="-"
        )
    )
    assert form(RECORD) == b"h:1/n:-|key|value;"
    assert form(NULLS) == b"NO_HEADERS|-|-;"


def test_the_value_can_be_left_out() -> None:
    assert DefaultFormatter(shown("offset", print_value="false"))(RECORD) == b"Offset:41\n"


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("String", "ü".encode(), "ü".encode()),
        ("String", b"\xff", "\N{REPLACEMENT CHARACTER}".encode()),
        ("Long", struct.pack(">q", -7), b"-7"),
        ("Integer", struct.pack(">i", 7), b"7"),
        ("Short", struct.pack(">h", 7), b"7"),
        ("Double", struct.pack(">d", 1.5), b"1.5"),
        ("Boolean", b"\x01", b"true"),
        ("UUID", b"3b241101-e2bb-4255-8caf-4136c566a962", b"3b241101-e2bb-4255-8caf-4136c566a962"),
        ("ByteArray", b"\xff", b"\xff"),
    ],
)
def test_java_deserializers_go_by_their_names(name, content, text) -> None:
    assert deserializer(f"org.apache.kafka.common.serialization.{name}Deserializer")(content) == text


@pytest.mark.parametrize("name", ["Long", "Integer", "Boolean", "UUID"])
def test_content_of_the_wrong_kind_is_refused(name) -> None:
    with pytest.raises(ToolFailed):
        deserializer(f"{name}Deserializer")(b"abc")


def test_unknown_classes_are_refused_by_name() -> None:
    with pytest.raises(ToolFailed, match=r"com\.example\.Mine"):
        deserializer("com.example.Mine")
    with pytest.raises(ToolFailed, match=r"com\.example\.Mine"):
        formatter("com.example.Mine", {})


def test_the_formatter_that_prints_nothing() -> None:
    assert formatter("org.apache.kafka.tools.consumer.NoOpMessageFormatter", {})(RECORD) == b""

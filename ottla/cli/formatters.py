"""How `ottla console-consumer` writes a record: Kafka's formatters and deserializers by class name."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from uuid import UUID

from ottla.cli.options import ToolFailed, is_true
from ottla.reader import Received

Deserializer = Callable[[bytes], bytes]
Formatter = Callable[[Received], bytes]

PACKAGE = "org.apache.kafka.common.serialization."


def _number(layout: str, name: str) -> Deserializer:
    packed = struct.Struct(layout)

    def convert(content: bytes) -> bytes:
        if len(content) != packed.size:
            raise ToolFailed(f"Size of data received by {name}Deserializer is not {packed.size}")
        return str(packed.unpack(content)[0]).encode()

    return convert


def _text(content: bytes) -> bytes:
    return content.decode(errors="replace").encode()


def _boolean(content: bytes) -> bytes:
    if content not in (b"\x00", b"\x01"):
        raise ToolFailed("Size or content of data received by BooleanDeserializer is no boolean")
    return b"true" if content == b"\x01" else b"false"


def _uuid(content: bytes) -> bytes:
    try:
        return str(UUID(content.decode())).encode()
    except ValueError as error:
        raise ToolFailed(f"Error parsing data into UUID: {error}") from error


DESERIALIZERS: dict[str, Deserializer] = {
    "String": _text,
    "ByteArray": bytes,
    "Bytes": bytes,
    "Long": _number(">q", "Long"),
    "Integer": _number(">i", "Integer"),
    "Short": _number(">h", "Short"),
    "Double": _number(">d", "Double"),
    "Float": _number(">f", "Float"),
    "Boolean": _boolean,
    "UUID": _uuid,
}


def deserializer(class_name: str | None) -> Deserializer:
    """The function that stands for a Java class; bytes as they are for None."""
    if class_name is None:
        return bytes
    name = class_name.removeprefix(PACKAGE).removesuffix("Deserializer")
    if name not in DESERIALIZERS:
        raise ToolFailed(f"{class_name} is no deserializer of this tool: {', '.join(DESERIALIZERS)}")
    return DESERIALIZERS[name]


def formatter(class_name: str, properties: Mapping[str, str]) -> Formatter:
    """The formatter that stands for a Java class."""
    name = class_name.rpartition(".")[2]
    if name in ("DefaultMessageFormatter", "LoggingMessageFormatter"):
        return DefaultFormatter(properties)
    if name == "NoOpMessageFormatter":
        return lambda received: b""
    raise ToolFailed(f"{class_name} is no formatter of this tool")


class DefaultFormatter:
    """Fields of a record in Kafka's order, with its separators."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def separator(key: str, default: str) -> bytes:
            return properties.get(key, default).encode()

        self._shown = {
            field: is_true(properties, f"print.{field}", default=field == "value")
            for field in ("timestamp", "partition", "offset", "epoch", "headers", "key", "value")
        }
        self._between = separator("key.separator", "\t")
        self._end = separator("line.separator", "\n")
        self._between_headers = separator("headers.separator", ",")
        self._null = separator("null.literal", "null")
        self._key = deserializer(properties.get("key.deserializer"))
        self._value = deserializer(properties.get("value.deserializer"))
        self._header = deserializer(properties.get("headers.deserializer"))

    def __call__(self, received: Received) -> bytes:
        record, shown = received.record, self._shown
        fields = []
        if shown["timestamp"]:
            fields.append(self._timestamp(received))
        if shown["partition"]:
            fields.append(b"Partition:%d" % received.partition)
        if shown["offset"]:
            fields.append(b"Offset:%d" % record.offset)
        if shown["epoch"]:
            fields.append(b"Epoch:NOT_PRESENT")
        if shown["headers"]:
            fields.append(self._headers(record.headers))
        if shown["key"]:
            fields.append(self._content(record.key, self._key))
        if shown["value"]:
            fields.append(self._content(record.value, self._value))
        return self._between.join(fields) + self._end

    def _timestamp(self, received: Received) -> bytes:
        if received.timestamp_type == "NoTimestampType":
            return b"NO_TIMESTAMP"
        return f"{received.timestamp_type}:{received.record.timestamp}".encode()

    def _headers(self, headers: tuple[tuple[str, bytes | None], ...]) -> bytes:
        if not headers:
            return b"NO_HEADERS"
        pairs = (name.encode() + b":" + self._content(content, self._header) for name, content in headers)
        return self._between_headers.join(pairs)

    def _content(self, content: bytes | None, convert: Deserializer) -> bytes:
        return self._null if content is None else convert(content)

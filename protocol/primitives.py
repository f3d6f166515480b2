"""Variable-length integers, tagged-field sections and the failures that compiled codecs share.

The codecs compiled from the schemas do the ordinary cases in line and call here for the rest. An unsigned
varint is read as Kafka's readers do: at most 5 bytes, the value taken as a signed 32-bit integer, so that
huge values turn negative (a negative compact length means null, as in Kafka).

Reading past the end of a buffer raises IndexError or struct.error, which `protocol.schema.base` and the
header readers turn into MalformedMessage.
"""

from __future__ import annotations

from typing import Final

from protocol.errors import MalformedMessage, ManyElements, UnencodableMessage

Buffer = bytes | bytearray | memoryview

#: Kafka refuses longer strings in both encodings.
MAX_STRING_BYTES: Final = 32767
#: The unsigned varints of one byte.
SMALL_UVARINTS: Final = tuple(bytes([value]) for value in range(128))


def read_uvarint(buf: Buffer, at: int) -> tuple[int, int]:
    """Read an unsigned varint at `at`; return (value, position after it)."""
    value = shift = 0
    for index in range(at, at + 5):
        byte = buf[index]
        value |= (byte & 127) << shift
        if byte < 128:
            value &= 0xFFFFFFFF
            return (value if value < 0x80000000 else value - 0x100000000), index + 1
        shift += 7
    raise MalformedMessage("a varint of more than 5 bytes")


def uvarint(value: int) -> bytes:
    """The unsigned varint of 0 <= value < 2**32."""
    if value < 128:
        return SMALL_UVARINTS[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def skip_tags(buf: Buffer, at: int, end: int, count: int) -> int:
    """Skip `count` tagged fields, all of them unknown; return the position after them."""
    for _ in range(count):
        _, at = read_uvarint(buf, at)
        size, at = read_uvarint(buf, at)
        if not 0 <= size <= end - at:
            raise MalformedMessage(f"a tagged field of {size} bytes where {end - at} are left")
        at += size
    return at


def tagged_section(fields: list[tuple[int, bytes]]) -> bytes:
    """The section of tagged fields, which must come in ascending order of tags."""
    parts = [uvarint(len(fields))]
    for tag, data in fields:
        parts += (uvarint(tag), uvarint(len(data)), data)
    return b"".join(parts)


def null_field(path: str) -> MalformedMessage:
    """The failure for null where the schema does not allow it."""
    return MalformedMessage(f"{path} must not be null")


def short_field(path: str, size: int) -> MalformedMessage:
    """The failure for a field that is announced longer than the rest of its message."""
    return MalformedMessage(f"{path} of {size} bytes exceeds what is left of the message")


def long_string(path: str, size: int) -> MalformedMessage:
    """The failure for a string above Kafka's limit."""
    return MalformedMessage(f"{path} of {size} bytes exceeds the {MAX_STRING_BYTES} a string may have")


def many_elements(path: str, count: int) -> ManyElements:
    """The failure for an array with more elements than bytes are left, or than a message may hold."""
    return ManyElements(f"{path} of {count} elements exceeds the rest of the message or the cap on elements")


def long_fields(path: str, size: int) -> MalformedMessage:
    """The failure for more bytes in strings and byte fields than a message may hold."""
    return MalformedMessage(f"{path} of {size} bytes exceeds the cap on strings and bytes of a message")


def many_tags(path: str, count: int) -> MalformedMessage:
    """The failure for more tagged fields than a message may hold."""
    return MalformedMessage(f"{path}: {count} tagged fields exceed the cap on tagged fields")


def bad_tag(path: str, tag: int, size: int) -> MalformedMessage:
    """The failure for a tagged field that does not belong into this version or is of a wrong size."""
    return MalformedMessage(f"{path}: tagged field {tag} of {size} bytes does not fit")


def refused_field(path: str, version: int) -> UnencodableMessage:
    """The failure for a value that a version cannot carry and that must not be dropped."""
    return UnencodableMessage(f"{path} has a value that version {version} cannot carry")


def refused_string(path: str, size: int) -> UnencodableMessage:
    """The failure for a string too long to be sent."""
    return UnencodableMessage(f"{path} of {size} bytes exceeds the {MAX_STRING_BYTES} a string may have")


def clipped(data: bytes) -> bytes:
    """A text for people, in UTF-8, without what is more than a string may have. It may quote what a client
    sent, which is as long.
    """
    if len(data) <= MAX_STRING_BYTES:
        return data
    return data[:MAX_STRING_BYTES].decode("utf-8", "ignore").encode()


def uuid16(value: bytes, path: str) -> bytes:
    """`value` if it has the 16 bytes of a uuid."""
    if len(value) != 16:
        raise UnencodableMessage(f"{path}: a uuid has 16 bytes, not {len(value)}")
    return value

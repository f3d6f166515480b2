"""Variable-length integers of the record format: 7 bits a byte, least significant group first, zigzag signs.

A varint is 32 bits in at most 5 bytes, a varlong 64 bits in at most 10. Like Kafka's reader, surplus bits of
the last byte are dropped and encodings longer than necessary are accepted; a continuation bit on the last
byte is not.
"""

from __future__ import annotations

from protocol.records.crc import Buffer

VARINT_BYTES = 5
VARLONG_BYTES = 10


class BadVarint(ValueError):
    """A varint that is longer than its type allows, or that the buffer cuts off."""


def read_varint(buf: Buffer, at: int, end: int) -> tuple[int, int]:
    """The signed 32-bit varint at `at` and the position after it."""
    raw, at = _read_raw(buf, at, end, VARINT_BYTES)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), at


def read_varlong(buf: Buffer, at: int, end: int) -> tuple[int, int]:
    """The signed 64-bit varlong at `at` and the position after it."""
    raw, at = _read_raw(buf, at, end, VARLONG_BYTES)
    raw &= 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), at


def _read_raw(buf: Buffer, at: int, end: int, most: int) -> tuple[int, int]:
    raw = shift = 0
    stop = min(end, at + most)
    while at < stop:
        byte = buf[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw, at
        shift += 7
    raise BadVarint("varint is too long" if stop < end or shift == 7 * most else "varint is cut off")


def append_varint(out: bytearray, value: int) -> None:
    """Append the zigzag encoding of a signed number (shortest form; serves varint and varlong)."""
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)

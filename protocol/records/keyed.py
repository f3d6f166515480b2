"""Batches as coordinators write them: a key and perhaps a value for each record, one timestamp, no headers,
not compressed.

Equal to what `builder.build_batch` makes of the same records, byte for byte, at half its price: 4 us instead
of 8 for the one record of an offset commit, with what the log wants to know of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from protocol.records.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
)
from protocol.records.crc import crc32c
from protocol.records.rules import Checked
from protocol.records.varints import append_varint

_CRC = Struct(">I")
_NO_VALUE = b"\x01"  # zigzag of -1
_NO_HEADERS = b"\x00"
_ONE_BYTE, _TWO_BYTES = 1 << 6, 1 << 13  # what no longer fits into as many, its sign in the lowest bit
_START = b"\x00\x00"  # attributes of a record, and no time between it and the first one


def _varint(value: int) -> bytes:
    """Of a number that is not negative."""
    if _ONE_BYTE <= value < _TWO_BYTES:  # half the price, for the later records of a big batch
        return bytes((value << 1 & 0x7F | 0x80, value >> 6))
    out = bytearray()
    append_varint(out, value)
    return bytes(out)


_VARINTS = tuple(_varint(value) for value in range(512))  # most keys and values are shorter


def keyed_batch(
    records: Sequence[tuple[bytes, bytes | None]],
    timestamp: int,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    transactional: bool = False,
) -> Checked:
    """A batch of these records, at least one, all of the time `timestamp` (ms)."""
    out = bytearray(HEADER_SIZE)
    known = _VARINTS
    most = len(known)
    for delta, (key, value) in enumerate(records):
        length = len(key)
        body = _START + (known[delta] if delta < most else _varint(delta))
        body += (known[length] if length < most else _varint(length)) + key
        if value is None:
            body += _NO_VALUE
        else:
            length = len(value)
            body += (known[length] if length < most else _varint(length)) + value
        length = len(body) + 1
        out += (known[length] if length < most else _varint(length)) + body + _NO_HEADERS
    count, size = len(records), len(out)
    attributes = TRANSACTIONAL_BIT if transactional else 0
    HEADER.pack_into(
        out, 0, 0, size - LOG_OVERHEAD, -1, 2, 0, attributes, count - 1, timestamp, timestamp,
        producer_id, producer_epoch, NO_SEQUENCE, count,
    )  # fmt: skip
    _CRC.pack_into(out, CRC_AT, crc32c(memoryview(out)[ATTRIBUTES_AT:]))
    return Checked(
        out, 0, size, count, count - 1, attributes, timestamp,
        producer_id, producer_epoch, NO_SEQUENCE, NO_TIMESTAMP,
    )  # fmt: skip

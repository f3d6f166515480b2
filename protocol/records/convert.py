"""Down-conversion: stored batches for readers of Fetch v0 to v3.

Fetch v0 and v1 read magic 0, v2 and v3 magic 1. Headers and control batches are dropped, the codec is kept,
each batch becomes one wrapper or one run of messages. What already is as old as wanted stays as it is. Of
uncompressed output, records below the fetch offset are left out. zstd cannot be expressed: what lies before
it is converted, and where nothing does it is 76.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import HEADER_SIZE, MAGIC_AT, Record, batches, read_header, records
from protocol.records.compression import ZSTD
from protocol.records.crc import Buffer
from protocol.records.legacy import build_message_set, legacy_records, read_message


def down_convert(
    buf: Buffer, to_magic: int, first_offset: int = 0, at: int = 0, end: int | None = None
) -> bytearray:
    """The whole batches in buf[at:end] as message sets of `to_magic` (0 or 1) for a fetch from
    `first_offset`.

    Raises InvalidRecords: UNSUPPORTED_COMPRESSION_TYPE where zstd comes first, others for damaged batches.
    """
    out = bytearray()
    for begin, size in batches(buf, at, end):
        if buf[begin + MAGIC_AT] <= to_magic:
            out += buf[begin : begin + size]
            continue
        try:
            out += _converted(buf, begin, size, to_magic, first_offset)
        except InvalidRecords as error:
            if out and error.error == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                break  # the client learns of it when it comes here
            raise
    return out


def _converted(buf: Buffer, at: int, size: int, to_magic: int, first_offset: int) -> bytearray:
    append_time = None
    found: Iterator[Record]
    if buf[at + MAGIC_AT] == 2:
        if size < HEADER_SIZE:
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"A batch of {size} bytes")
        head = read_header(buf, at)
        codec = head.codec
        if head.is_control:
            return bytearray()
        if codec == ZSTD:
            raise InvalidRecords(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                "Down-conversion of zstandard-compressed batches is not supported",
            )
        if head.is_log_append_time:
            append_time = head.max_timestamp
        found = records(buf, at)
    else:
        message = read_message(buf, at, size)
        codec = message.codec
        if message.is_log_append_time:
            append_time = message.timestamp
        found = legacy_records(buf, at, size)
    if not codec:
        found = (record for record in found if record.offset >= first_offset)
    return build_message_set(found, to_magic, codec, append_time)

"""Making batches of magic 2: from records, or around a records section that exists.

Every batch that Ottla writes itself comes from here: internal topics, converted old messages, recompressed
batches, control batches (`control.py`). Encodings are the shortest, as Kafka's own builder writes them, so
equal input gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack_into

from protocol.records.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Record,
    wrap64,
)
from protocol.records.compression import compress
from protocol.records.crc import Buffer, crc32c
from protocol.records.varints import append_varint


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: int = 0,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = -1,
    transactional: bool = False,
    log_append_time_ms: int | None = None,
    keep_offsets: bool = False,
) -> bytearray:
    """A batch of these records.

    Offsets run on from `base_offset`; with `keep_offsets` each record keeps its own, which must not fall. The
    base timestamp is the first record's. `log_append_time_ms` sets that timestamp type and the maxTimestamp.
    """
    section = bytearray()
    base_timestamp = max_timestamp = NO_TIMESTAMP
    count, last_delta = 0, -1
    for record in records:
        if not count:
            base_timestamp = max_timestamp = record.timestamp
        elif record.timestamp > max_timestamp:
            max_timestamp = record.timestamp
        last_delta = record.offset - base_offset if keep_offsets else count
        append_record(section, record, wrap64(record.timestamp - base_timestamp), last_delta)
        count += 1
    attributes = codec | (TRANSACTIONAL_BIT if transactional else 0)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = log_append_time_ms
    return wrap_section(
        compress(codec, section, level),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=last_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=count,
    )


def append_record(out: bytearray, record: Record, time_delta: int, offset_delta: int) -> None:
    """Encode one record at the end of a records section."""
    body = bytearray(1)  # attributes of a record: none are defined
    append_varint(body, time_delta)
    append_varint(body, offset_delta)
    _append_nullable(body, record.key)
    _append_nullable(body, record.value)
    append_varint(body, len(record.headers))
    for name, content in record.headers:
        _append_nullable(body, name.encode())
        _append_nullable(body, content)
    append_varint(out, len(body))
    out += body


def wrap_section(
    section: Buffer,
    *,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """A header with its checksum in front of a records section that is already compressed as `attributes`
    say.
    """
    out = bytearray(HEADER_SIZE)
    out += section
    HEADER.pack_into(
        out, 0, base_offset, len(out) - LOG_OVERHEAD, leader_epoch, 2, 0, attributes, last_offset_delta,
        base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count,
    )  # fmt: skip
    stamp_crc(out, 0, len(out))
    return out


def stamp_crc(buf: bytearray, at: int, size: int) -> None:
    """Write the checksum of the batch at `at` into its header, after a change inside the checked part."""
    pack_into(">I", buf, at + CRC_AT, crc32c(memoryview(buf)[at + ATTRIBUTES_AT : at + size]))


def _append_nullable(out: bytearray, field: bytes | None) -> None:
    if field is None:
        out.append(1)  # zigzag of -1
    else:
        append_varint(out, len(field))
        out += field

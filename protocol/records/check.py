"""What Kafka checks and changes in a produced batch of magic 2 before its log is asked.

Pure: bytes, the topic's rules and the time in, a `Checked` batch or InvalidRecords out. The order of the
checks is Kafka's, since it decides which code a batch with several faults gets: exactly one batch of magic 2
(87), zstd below Produce v7 (76), base offset 0 (87), size (10), checksum (2), codec number (-1), counts,
control bit and producer fields (87), then the records: they parse (87; undecodable compressed data -1), null
keys on a compacted topic (87 with the records' indexes), times (32 with indexes).

Offset deltas that are not 0, 1, 2...: a batch that is recompressed gets right ones; a compressed batch that
keeps its codec is refused with -1, as by Kafka; an uncompressed one is refused with 87, which is stricter:
Kafka stores it, and consumers then see offsets that the log does not have.

What is changed: under LogAppendTime bit 3 and maxTimestamp are set; under CreateTime a wrong maxTimestamp is
put right (`times.py`); a codec that is not the topic's is replaced. The batch is changed in place unless it
is rebuilt.

One record of 100 bytes takes 1.9 us in all, 1 MiB of 1 KiB records 105 us. Whatever is compressed or holds
thousands of irregular records takes milliseconds; callers run such checks in a thread (`cost.py`).
"""

from __future__ import annotations

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_AT,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    next_size,
    read_header,
)
from protocol.records.builder import wrap_section
from protocol.records.compression import ZSTD, decompress_chunks, unknown_codec
from protocol.records.cost import takes_long
from protocol.records.crc import Buffer, crc32c
from protocol.records.rules import KEEP_CODEC, BatchRules, Checked, trusted_batch
from protocol.records.streams import recompress, renumbered, walk_section
from protocol.records.times import settle_times
from protocol.records.walk import RecordWalk, invalid, walk_record, walk_records, wrong_count

__all__ = ["BatchRules", "Checked", "check_produced_batch", "takes_long", "trusted_batch"]

ZSTD_FROM_VERSION = 7
_SPECIAL_BITS = CODEC_MASK | LOG_APPEND_TIME_BIT | CONTROL_BIT
_COPY_BYTES = 4096  # below this a copy of the bytes is cheaper than a memoryview of them
_new = tuple.__new__


def check_produced_batch(
    buf: Buffer, at: int, size: int, rules: BatchRules, now_ms: int, api_version: int = ZSTD_FROM_VERSION
) -> Checked:
    """Check the batch that a Produce request (v3 and later) holds for a partition in buf[at : at + size].

    A bytearray is changed in place; of other buffers a copy is made. Bytes behind the batch that are too few
    for a second one are ignored. Raises InvalidRecords with Kafka's code.
    """
    if size < HEADER_SIZE:
        find_batch(buf, at, size)
        raise corrupt("it is shorter than its header")
    head: tuple[int, ...] = HEADER.unpack_from(buf, at)
    base, length, _, magic, crc, attributes, delta, first, latest, producer_id, epoch, sequence, count = head
    if length + LOG_OVERHEAD != size or magic != 2:
        size = find_batch(buf, at, size)
        if size < HEADER_SIZE:
            raise corrupt("it is shorter than its header")
    if base or size > rules.max_message_bytes or attributes & CODEC_MASK == ZSTD:
        _check_front(base, size, attributes, rules, api_version)
    if type(buf) is not bytearray:
        buf, at = bytearray(memoryview(buf)[at : at + size]), 0
    if size < _COPY_BYTES:
        computed = crc32c(buf[at + ATTRIBUTES_AT : at + size])
    else:
        computed = crc32c(memoryview(buf)[at + ATTRIBUTES_AT : at + size])
    if computed != crc:
        raise corrupt(f"stored crc = {crc}, computed crc = {computed}")
    if attributes & _SPECIAL_BITS or not rules.plain:
        return _check_special(buf, at, size, rules, now_ms)
    if count <= 0 or delta + 1 != count or sequence < 0 <= producer_id:
        _check_fields(attributes, delta, producer_id, sequence, count)
    begin = at + HEADER_SIZE
    end = at + size
    if count == 1:
        after, high, sequential, _ = walk_record(buf, begin, end, 0)
        if after == begin:
            raise wrong_count(0, 1)
        if after != end:
            raise wrong_count(1, 1)
    else:
        high, sequential = walk_records(buf, begin, end, count)
    half = (high + 1) >> 1  # no time is farther than this from the first
    if (
        high & 1
        or first + half != latest
        or latest > now_ms + rules.timestamp_after_max_ms
        or first - half < now_ms - rules.timestamp_before_max_ms
        or latest < NO_TIMESTAMP
    ):
        attributes, latest, _ = settle_times(buf, at, size, rules, now_ms, high, False)
    if not sequential:
        raise out_of_sequence()
    return _new(
        Checked,
        (buf, at, size, count, delta, attributes, latest, producer_id, epoch, sequence, NO_TIMESTAMP),
    )


def find_batch(buf: Buffer, at: int, size: int) -> int:
    """Size of the only batch in the buffer, which must be of magic 2. Raises InvalidRecords (87 or 2)."""
    end = at + size
    found = next_size(buf, at, end)
    if not found:
        raise invalid("Produce requests must have at least one record batch per partition")
    if buf[at + MAGIC_AT] != 2:
        raise invalid("Produce requests are only allowed to contain record batches with magic version 2")
    if next_size(buf, at + found, end):
        raise invalid("Produce requests are only allowed to contain exactly one record batch per partition")
    return found


def corrupt(why: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt ({why})")


def out_of_sequence(error: ErrorCode = ErrorCode.INVALID_RECORD) -> InvalidRecords:
    return InvalidRecords(error, "The offset deltas of the records are not 0, 1, 2 and so on")


def too_large(size: int, rules: BatchRules) -> InvalidRecords:
    where = f" in the append to {rules.topic_partition}" if rules.topic_partition else ""
    return InvalidRecords(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size{where} is {size} bytes which exceeds the maximum configured value of "
        f"{rules.max_message_bytes}.",
    )


def _check_front(base: int, size: int, attributes: int, rules: BatchRules, api_version: int) -> None:
    if attributes & CODEC_MASK == ZSTD and api_version < ZSTD_FROM_VERSION:
        raise InvalidRecords(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {api_version} are not allowed to use ZStandard compression",
        )
    if base:
        raise invalid(f"The baseOffset of the record batch in the append should be 0, but it is {base}")
    if size > rules.max_message_bytes:
        raise too_large(size, rules)


def _check_fields(attributes: int, delta: int, producer_id: int, sequence: int, count: int) -> None:
    """What must hold in the header beside the checksum."""
    codec = attributes & CODEC_MASK
    if codec > ZSTD:
        raise unknown_codec(codec)
    if delta < 0:
        raise invalid(f"Batch has an invalid offset range: [0, {delta}]")
    if count <= 0:
        raise invalid(f"Invalid reported count for record batch: {count}")
    if delta + 1 != count:
        raise invalid(f"Inconsistent batch offset range [0, {delta}] and count of records {count}")
    if attributes & CONTROL_BIT:
        raise invalid("Clients are not allowed to write control records")
    if sequence < 0 <= producer_id:
        raise invalid(f"Invalid sequence number {sequence} in record batch with producerId {producer_id}")


def _check_special(buf: bytearray, at: int, size: int, rules: BatchRules, now_ms: int) -> Checked:
    """The rest of the checks for batches and topics that are not plain."""
    head = read_header(buf, at)
    count, codec = head.record_count, head.codec
    _check_fields(head.attributes, head.last_offset_delta, head.producer_id, head.base_sequence, count)
    walk = RecordWalk(find_null_keys=rules.compacted)
    section = memoryview(buf)[at + HEADER_SIZE : at + size]
    if codec:
        walk_section(codec, section, count, walk, rules)
    else:
        after = walk.step(buf, at + HEADER_SIZE, at + size, count)
        if walk.index != count or after != at + size:
            raise wrong_count(walk.index, count)
    times = settle_times(buf, at, size, rules, now_ms, walk.high, bool(walk.null_keys))
    attributes, latest = times.attributes, times.max_timestamp
    target = codec if rules.compression == KEEP_CODEC else rules.compression
    if target == codec and not walk.sequential:
        raise out_of_sequence(ErrorCode.UNKNOWN_SERVER_ERROR if codec else ErrorCode.INVALID_RECORD)
    if target != codec:
        if walk.sequential:
            chunks = decompress_chunks(codec, section)
        else:
            chunks = renumbered(codec, section, count, rules.max_message_bytes)
        room = rules.max_message_bytes - HEADER_SIZE
        level = rules.compression_level if rules.compression != KEEP_CODEC else None
        rebuilt = recompress(chunks, target, level, room)
        attributes = attributes & (LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT) | target
        buf = wrap_section(
            rebuilt,
            attributes=attributes,
            last_offset_delta=head.last_offset_delta,
            base_timestamp=head.base_timestamp,
            max_timestamp=latest,
            producer_id=head.producer_id,
            producer_epoch=head.producer_epoch,
            base_sequence=head.base_sequence,
            count=count,
        )
        at, size = 0, len(buf)
    return Checked(
        buf,
        at,
        size,
        count,
        head.last_offset_delta,
        attributes,
        latest,
        head.producer_id,
        head.producer_epoch,
        head.base_sequence,
        times.log_append_time_ms,
    )

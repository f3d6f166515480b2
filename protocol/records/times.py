"""Timestamps of a produced batch: which are refused, and what the header says afterwards.

CreateTime: every record's time must lie between now - before.max and now + after.max, except -1, which means
none; maxTimestamp becomes the largest time of the records (never below -1). A batch that claims to be
LogAppendTime stands for that one time in all its records: it is refused with 32 where that is -1 or out of
range, else the claim is dropped. LogAppendTime: such a claim is refused; else the type bit is set and
maxTimestamp is now, while base timestamp and records stay as they are. The checksum is redone only if
something changed.

The walk over the lengths has found the farthest time delta. If that bounds all times well enough nothing else
is read; otherwise each record's time is. Arithmetic wraps at 64 bits as Java's does.

Errors of single records are collected as Kafka does: one a record, a null key before its time. One bad time
makes the whole 32, otherwise it is 87. No more than `RECORD_ERRORS_MAX` are listed.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    MAX_TIMESTAMP_AT,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
    wrap64,
)
from protocol.records.builder import stamp_crc
from protocol.records.rules import FOREVER, BatchRules
from protocol.records.streams import sound_records
from protocol.records.walk import time_bounds

RECORD_ERRORS_MAX = 1000
_SHOWN_ERRORS = 3
_KNOWN_BITS = 0x7F  # Kafka writes no others when it changes a header
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")


class BatchTimes(NamedTuple):
    """What the header says now, and the append time to answer (-1 under CreateTime)."""

    attributes: int
    max_timestamp: int
    log_append_time_ms: int


def settle_times(
    buf: bytearray, at: int, size: int, rules: BatchRules, now_ms: int, high: int, null_keys: bool
) -> BatchTimes:
    """Check the times of the sound batch in buf[at : at + size] and put its header right.

    `high` is the largest zigzag time delta, `null_keys` whether keys are missing that must not. Raises
    InvalidRecords (32 or 87) with the errors of the records.
    """
    head = read_header(buf, at)
    claimed = head.is_log_append_time
    attributes = head.attributes & ~LOG_APPEND_TIME_BIT
    append_time = NO_TIMESTAMP
    if null_keys or (claimed and rules.log_append_time):
        latest = _check_each(buf, at, size, head, rules, now_ms)
    elif rules.log_append_time:
        attributes |= LOG_APPEND_TIME_BIT
        latest = append_time = now_ms
    elif claimed:
        latest = max(head.max_timestamp, NO_TIMESTAMP)
        if latest == NO_TIMESTAMP or out_of_range(latest, rules, now_ms):
            latest = _check_each(buf, at, size, head, rules, now_ms)
    else:
        least, most = time_bounds(high)
        first = head.base_timestamp
        if (
            most is not None
            and first + least >= now_ms - min(rules.timestamp_before_max_ms, FOREVER)
            and first + most <= min(now_ms + rules.timestamp_after_max_ms, FOREVER)
        ):
            latest = max(first + most, NO_TIMESTAMP)
        else:
            latest = _check_each(buf, at, size, head, rules, now_ms)
    if attributes != head.attributes or latest != head.max_timestamp:
        attributes &= _KNOWN_BITS
        _ATTRIBUTES.pack_into(buf, at + ATTRIBUTES_AT, attributes)
        _TIMESTAMP.pack_into(buf, at + MAX_TIMESTAMP_AT, latest)
        stamp_crc(buf, at, size)
    return BatchTimes(attributes, latest, append_time)


def out_of_range(timestamp: int, rules: BatchRules, now_ms: int) -> bool:
    """Whether a time other than -1 is farther from now than the topic allows."""
    age = wrap64(now_ms - timestamp)
    return age > rules.timestamp_before_max_ms or wrap64(-age) > rules.timestamp_after_max_ms


def refuse_records(errors: list[tuple[int, str]], total: int, bad_times: bool) -> InvalidRecords:
    """The refusal of a batch for faults of single records."""
    if bad_times:
        code = ErrorCode.INVALID_TIMESTAMP
        message = "One or more records have been rejected due to invalid timestamp"
    else:
        code = ErrorCode.INVALID_RECORD
        shown = "; ".join(f"record {index}: {text}" for index, text in errors[:_SHOWN_ERRORS])
        message = (
            f"One or more records have been rejected due to {total} record errors in total, and only showing "
            f"the first three errors at most: {shown}"
        )
    return InvalidRecords(code, message, tuple(errors))


class RecordErrors:
    """Collects the faults of single records and tells the largest time of the others."""

    __slots__ = ("_bad_times", "_errors", "_now_ms", "_rules", "_total", "latest")

    def __init__(self, rules: BatchRules, now_ms: int) -> None:
        self._rules, self._now_ms = rules, now_ms
        self._errors: list[tuple[int, str]] = []
        self._total = 0
        self._bad_times = False
        self.latest = NO_TIMESTAMP

    def look_at(self, index: int, timestamp: int, key_is_null: bool, claimed: bool) -> None:
        """Take the next record. `claimed`: the producer said that its time is LogAppendTime."""
        rules = self._rules
        text = None
        if key_is_null and rules.compacted:
            text = "Compacted topic cannot accept message without key in topic partition "
            text += rules.topic_partition
        elif not rules.log_append_time and timestamp != NO_TIMESTAMP:
            if out_of_range(timestamp, rules, self._now_ms):
                self._bad_times = True
                low = wrap64(self._now_ms - rules.timestamp_before_max_ms)
                high = wrap64(self._now_ms + rules.timestamp_after_max_ms)
                text = (
                    f"Timestamp {timestamp} of message with offset {index} is out of range. "
                    f"The timestamp should be within [{low}, {high}]"
                )
        elif claimed:
            self._bad_times = True
            text = f"Invalid timestamp type in message {index}. "
            text += "Producer should not set timestamp type to LogAppendTime."
        if text is not None:
            self._total += 1
            if self._total <= RECORD_ERRORS_MAX:
                self._errors.append((index, text))
        elif timestamp > self.latest:
            self.latest = timestamp

    def raise_if_any(self) -> None:
        if self._total:
            raise refuse_records(self._errors, self._total, self._bad_times)


def _check_each(buf: bytearray, at: int, size: int, head: BatchHeader, rules: BatchRules, now_ms: int) -> int:
    """Look at each record; the largest time among them."""
    errors = RecordErrors(rules, now_ms)
    section = memoryview(buf)[at + HEADER_SIZE : at + size]
    records = sound_records(head.codec, section, head.record_count, rules.max_message_bytes)
    first, claimed = head.base_timestamp, head.is_log_append_time
    for index, (_, _, _, raw, null) in enumerate(records):
        timestamp = head.max_timestamp if claimed else wrap64(first + ((raw >> 1) ^ -(raw & 1)))
        errors.look_at(index, timestamp, null, claimed)
    errors.raise_if_any()
    return errors.latest

"""Offsets by time: ListOffsets for a timestamp, for the greatest timestamp, and in its oldest form.

The answer is an exact record, also inside a compressed batch. The segments and their time indexes narrow the
search down to one batch, whose records are then read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from protocol.errors import InvalidRecords
from protocol.records.batch import Record, records
from protocol.records.legacy import legacy_records
from storage import names, scan
from storage.errors import CorruptLog

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog
    from storage.segment import Segment

LATEST, EARLIEST = -1, -2
_T = TypeVar("_T")


class TimedOffset(NamedTuple):
    """A record found by time, and the leader epoch it was written in (-1 for old formats)."""

    offset: int
    timestamp: int
    leader_epoch: int


def _steady(log: PartitionLog, search: Callable[[], _T]) -> _T:
    """What a search finds while no segment comes or goes: on another thread it must not see half a swap."""
    segments = log.local.segments
    while True:
        before = segments.changes
        try:
            found = search()
        except (OSError, ValueError):
            if segments.changes == before and not segments.swapping:
                raise
            continue
        if segments.changes == before and not segments.swapping:
            return found


def offset_for_timestamp(log: PartitionLog, timestamp: int, upto: int) -> TimedOffset | None:
    """The first readable record with a timestamp not below the asked one, if it lies below offset `upto`."""
    return _steady(log, lambda: _offset_for_timestamp(log, timestamp, upto))


def _offset_for_timestamp(log: PartitionLog, timestamp: int, upto: int) -> TimedOffset | None:
    for segment in log.local.segments.from_offset(log.start_offset):
        if segment.size and segment.largest_timestamp >= timestamp:
            found = _first_at(segment, timestamp, log.start_offset)
            if found is not None:
                return found if found.offset < upto else None
    return None


def _first_at(segment: Segment, timestamp: int, start_offset: int) -> TimedOffset | None:
    _, offset = segment.time_index.lookup(timestamp)
    _, position = segment.offset_index.lookup(max(offset, start_offset))
    for facts in scan.scan(segment.handle, position, segment.size, scan.LOCATE_WINDOW):
        # A legacy wrapper of magic 0 has no timestamp of its own: its records have none either.
        if facts.max_timestamp >= timestamp and facts.last_offset >= start_offset:
            for record in read_records(segment, facts):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimedOffset(record.offset, record.timestamp, facts.leader_epoch)
    return None


def max_timestamp_offset(log: PartitionLog, upto: int) -> TimedOffset | None:
    """The first readable record that has the greatest timestamp, if it lies below offset `upto`."""
    return _steady(log, lambda: _max_timestamp_offset(log, upto))


def _max_timestamp_offset(log: PartitionLog, upto: int) -> TimedOffset | None:
    segments = [s for s in log.local.segments.from_offset(log.start_offset) if s.size]
    best: TimedOffset | None = None
    for segment in sorted(segments, key=lambda s: s.max_timestamp, reverse=True):
        if best is not None and segment.max_timestamp < best.timestamp:
            break
        found = _greatest(segment, log.start_offset)
        if found is not None and (
            best is None or (-found.timestamp, found.offset) < (-best.timestamp, best.offset)
        ):
            best = found
    return best if best is not None and best.offset < upto else None


def _greatest(segment: Segment, start_offset: int) -> TimedOffset | None:
    """The record with the greatest timestamp at or above `start_offset`."""
    if segment.max_timestamp < 0:
        return None
    found = segment.locate(segment.max_timestamp_offset)
    if found is not None and segment.max_timestamp_offset >= start_offset:
        best = _best_of(segment, found.position, found.position + found.size, start_offset)
        if best is not None and best.timestamp == segment.max_timestamp:
            return best
    # The batch that held it was cut by DeleteRecords: look at what is left.
    _, position = segment.offset_index.lookup(start_offset)
    return _best_of(segment, position, segment.size, start_offset)


def _best_of(segment: Segment, position: int, end: int, start_offset: int) -> TimedOffset | None:
    best: TimedOffset | None = None
    for facts in scan.scan(segment.handle, position, end, scan.LOCATE_WINDOW):
        if facts.last_offset < start_offset or (best is not None and facts.max_timestamp <= best.timestamp):
            continue
        for record in read_records(segment, facts):
            if record.offset >= start_offset and (best is None or record.timestamp > best.timestamp):
                best = TimedOffset(record.offset, record.timestamp, facts.leader_epoch)
    return best if best is not None and best.timestamp >= 0 else None


def read_records(segment: Segment, facts: scan.BatchFacts) -> Iterator[Record]:
    """The records of one batch. Raises CorruptLog where they cannot be read."""
    data = segment.handle.read_at(facts.position, facts.size)
    try:
        yield from (records(data) if facts.magic == 2 else legacy_records(data))
    except InvalidRecords as error:
        where = f"{segment.path(names.LOG)} at {facts.position}"
        raise CorruptLog(f"the batch in {where} cannot be read: {error}", facts.position) from error


def start_offsets_before(log: PartitionLog, timestamp: int, count: int, now_ms: int) -> list[int]:
    """What ListOffsets v0 answers: up to `count` offsets, newest first.

    They are the starts of the newest segment whose file was last written at or before `timestamp` and of all
    before it. The end of the log stands for one more, written now, if the last segment has records. LATEST
    takes all, EARLIEST the oldest. An offset may come twice after DeleteRecords, as in Kafka.
    """
    return _steady(log, lambda: _start_offsets_before(log, timestamp, count, now_ms))


def _start_offsets_before(log: PartitionLog, timestamp: int, count: int, now_ms: int) -> list[int]:
    segments = list(log.local.segments)
    offsets = [max(segment.base_offset, log.start_offset) for segment in segments]
    if log.active.size:
        offsets.append(log.end_offset)
    if timestamp == EARLIEST:
        del offsets[1:]
    elif timestamp != LATEST:
        if timestamp < now_ms:
            del offsets[len(segments) :]
        while offsets and (
            len(offsets) <= len(segments) and _written_ms(log, segments[len(offsets) - 1]) > timestamp
        ):
            offsets.pop()
    return offsets[::-1][:count]


def _written_ms(log: PartitionLog, segment: Segment) -> int:
    return log.local.files.mtime_ms(segment.path(names.LOG))

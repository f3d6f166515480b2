"""When a segment is full, and how the next one begins.

A segment is closed before an append that would make it larger than segment.bytes, that comes segment.ms
(less a random part of segment.jitter.ms) after its first batch by the batches' own timestamps, whose offset
does not fit 31 bits above its base, or for which an index has no room. Without appends nothing is closed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from storage import append
from storage.errors import AppendRefused
from storage.flush_job import FlushJob
from storage.log_config import FOREVER
from storage.offset_index import RELATIVE_MAX
from storage.segment import UNKNOWN

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog


def plan(log: PartitionLog) -> None:
    """Work out the limits of the active segment, so that an append compares four numbers."""
    segment, config = log.active, log.config
    log.size_limit = config.segment_bytes
    log.last_offset_max = segment.base_offset + RELATIVE_MAX
    log.roll_timestamp = log.roll_wall_ms = FOREVER
    first = segment.first_timestamp
    if first != UNKNOWN:
        age = config.roll_ms - segment.jitter_ms
        if first >= 0:
            log.roll_timestamp = first + age
        else:
            log.roll_wall_ms = segment.created_ms + age


def before_next(log: PartitionLog) -> None:
    """The active segment's indexes are full."""
    log.roll_due = True
    log.size_limit = -1


def make_room(log: PartitionLog, size: int, timestamp: int, last: int, now_ms: int) -> None:
    """Roll if this append must not go into the active segment. Raises AppendRefused, StorageFailed."""
    try:
        if not log.prepared:
            log.active.activate()
            log.handle = log.active.handle
            log.active.read_first_timestamp()
            # Now the snapshot of the last stop has it all; later, all that was appended would be walked over.
            log.load_producers()
            log.prepared = True
            plan(log)
            if log.active.size and log.active.indexes_full(log.config.segment_index_bytes):
                before_next(log)
        if size > log.config.segment_bytes:
            raise AppendRefused(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition {log.name}, "
                f"which exceeds the maximum configured segment size of {log.config.segment_bytes}.",
            )
        if (log.roll_due and log.position) or (
            log.position + size > log.config.segment_bytes
            or timestamp > log.roll_timestamp
            or last > log.last_offset_max
            or now_ms > log.roll_wall_ms
        ):
            roll(log, now_ms)
    except OSError as error:
        append.fail(log, error, "roll")


def roll(log: PartitionLog, now_ms: int) -> None:
    """Close the active segment and begin one at the next offset; what is staged is written before."""
    if log.staged:
        log.write_pending()
    base = log.next_offset
    try:
        log.local.roll(base, now_ms)
        producers = log.producers
        producers.map_end_offset = base
        producers.take_snapshot()
    except OSError as error:
        append.fail(log, error, "roll")
    finally:
        if log.local.segments.active is not log.active:
            log.active = log.local.segments.active
            log.active.activate()
            log.handle = log.active.handle
            log.position = 0
            log.tail.reset(base, 0)
            log.roll_due = False
            plan(log)
    log.end_offset = base
    log.directory.background(FlushJob(log, base))

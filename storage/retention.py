"""Which segments a log may lose, by start offset, size and time, and their removal.

Oldest first, up to the first that has to stay. A segment may go only if all of it is below the high
watermark. If every segment may go, a new one is begun at the end before, so that the log keeps its place; an
empty active segment stays. Ages come from the records' timestamps, so one record from the future keeps what
is behind it. A log that is only compacted loses nothing but what lies below its start offset.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from storage import append, cutting
from storage.segment import Segment

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)

MayGo: TypeAlias = Callable[[Segment, int], bool]
"""Of a segment and the offset at which it ends."""


def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """One run over a log; how many segments went. Raises StorageFailed."""
    log.check_online()
    try:
        count = _delete(log, lambda segment, end: _is_below_start(log, segment, end), now_ms, "the start")
        if log.config.deletes:
            count += _delete_by_size(log, now_ms)
            count += _delete_by_time(log, now_ms)
    except OSError as error:
        append.fail(log, error, "retention")
    return count


def _is_below_start(log: PartitionLog, segment: Segment, end: int) -> bool:
    """As in Kafka, the active segment stays even if nothing of it is readable."""
    return segment is not log.active and end <= log.start_offset


def _delete_by_size(log: PartitionLog, now_ms: int) -> int:
    limit = log.config.retention_bytes
    surplus = log.size_bytes - limit
    if limit < 0 or surplus < 0:
        return 0

    def may_go(segment: Segment, _: int) -> bool:
        nonlocal surplus
        if segment.size > surplus:
            return False
        surplus -= segment.size
        return True

    return _delete(log, may_go, now_ms, f"retention.bytes={limit}")


def _delete_by_time(log: PartitionLog, now_ms: int) -> int:
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    return _delete(log, lambda s, _: now_ms - s.largest_timestamp > limit, now_ms, f"retention.ms={limit}")


def _delete(log: PartitionLog, may_go: MayGo, now_ms: int, why: str) -> int:
    gone = _deletable(log, may_go)
    if not gone:
        return 0
    if len(gone) == len(log.local.segments):
        log.roll(now_ms)
    kept = log.local.segments.after(gone[-1])
    assert kept is not None
    producers = log.producers  # loaded while all of the log is there
    moved = log.directory.starts_moved
    cutting.move_start(log, kept.base_offset)
    log.directory.starts_moved = moved  # the names of the files tell this start
    log.local.set_aside(gone, now_ms)
    log.local.doom(producers.set_aside_snapshots(kept.base_offset), now_ms)
    logger.info("%s: %d segments below %d go, by %s", log.name, len(gone), kept.base_offset, why)
    return len(gone)


def _deletable(log: PartitionLog, may_go: MayGo) -> list[Segment]:
    found: list[Segment] = []
    segments = list(log.local.segments)
    ends = [segment.base_offset for segment in segments[1:]] + [log.end_offset]
    for segment, end in zip(segments, ends, strict=True):
        stays = segment is log.active and (not segment.size or log.staged)
        if stays or end > log.high_watermark or not may_go(segment, end):
            break
        found.append(segment)
    return found

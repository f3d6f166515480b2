"""Which log is cleaned next, and how far: the dirtiest one first.

A log is clean below its first dirty offset (the cleaner's checkpoint). What may be cleaned ends before the
active segment, before undecided transactions, before the first segment with records younger than
min.compaction.lag.ms, and before what is not synced: a power cut that took a newer record must not meet a log
from which the older one has gone already.

How dirty a log is, is told in bytes of whole segments: cleanable to clean plus cleanable. A log is due when
that exceeds min.cleanable.dirty.ratio, or when a record has waited longer than max.compaction.lag.ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.log_config import FOREVER

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog
    from storage.segment import Segment


@dataclass(slots=True)
class DirtyLog:
    """What cleaning a log now would mean. Offsets: [first_dirty, first_uncleanable) is new to the cleaner."""

    log: PartitionLog
    first_dirty: int
    first_uncleanable: int
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int  # for how long a record has waited beyond max.compaction.lag.ms; 0 if none has

    @property
    def ratio(self) -> float:
        """Cleanable to all bytes considered; 0 for none."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        if self.delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.ratio > self.log.config.min_cleanable_dirty_ratio


def first_dirty_offset(log: PartitionLog, checkpoint: int | None) -> int:
    """Where cleaning goes on: at the checkpoint, or at the log's start if that lies outside the log."""
    if checkpoint is None or not log.start_offset <= checkpoint <= log.end_offset:
        return log.start_offset
    return checkpoint


def assess(log: PartitionLog, checkpoint: int | None, now_ms: int) -> DirtyLog:
    """Weigh a log. Raises OSError where a segment's facts cannot be read."""
    first_dirty = first_dirty_offset(log, checkpoint)
    segments = list(log.local.segments)
    limit = _uncleanable_offset(log, segments, first_dirty, now_ms)
    bases = [segment.base_offset for segment in segments]
    # Whole segments only: the one that holds the limit stays.
    first_uncleanable = max((base for base in bases if base <= limit), default=bases[0])
    dirty_from = _floor(bases, min(first_dirty, first_uncleanable))
    clean = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    cleanable = sum(s.size for s in segments if dirty_from <= s.base_offset < first_uncleanable)
    return DirtyLog(
        log, first_dirty, first_uncleanable, clean, cleanable, _delay_ms(log, segments, first_dirty, now_ms)
    )


def _floor(bases: list[int], offset: int) -> int:
    return max((base for base in bases if base <= offset), default=bases[0])


def _uncleanable_offset(log: PartitionLog, segments: list[Segment], first_dirty: int, now_ms: int) -> int:
    # What is not synced may be lost in a power cut, and must not have cost older records of its keys before.
    limit = min(log.last_stable_offset, log.active.base_offset, log.recovery_point)
    lag = log.config.min_compaction_lag_ms
    if lag > 0:
        dirty_from = _floor([segment.base_offset for segment in segments], first_dirty)
        for segment in segments[:-1]:
            if segment.base_offset >= dirty_from and segment.largest_timestamp > now_ms - lag:
                return min(limit, segment.base_offset)
    return limit


def _delay_ms(log: PartitionLog, segments: list[Segment], first_dirty: int, now_ms: int) -> int:
    lag = log.config.max_compaction_lag_ms
    if lag >= FOREVER:
        return 0
    dirty_from = _floor([segment.base_offset for segment in segments], first_dirty)
    firsts = [s.read_first_timestamp() for s in segments[:-1] if s.base_offset >= dirty_from and s.size]
    earliest = min((timestamp for timestamp in firsts if timestamp > 0), default=FOREVER)
    return max(0, now_ms - lag - earliest)


def dirtiest(candidates: Iterable[DirtyLog]) -> DirtyLog | None:
    """The one to clean now, if any is due."""
    due = [candidate for candidate in candidates if candidate.is_due]
    return max(due, key=lambda each: each.ratio, default=None)

"""Who is cleaned, who may not be, and what the broker does between the steps of a pass.

Lives on the event loop; the reading and writing is done in workers by `session.py`. A partition is cleaned by
one thread at a time. It may be paused, by as many as like, for instance while it moves to another directory:
a pass under way is broken off then. A partition whose cleaning failed unexpectedly is set aside as
uncleanable until the broker restarts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage import swap
from storage.cleaner import choice
from storage.cleaner.batch_filter import LastRecord
from storage.cleaner.choice import DirtyLog
from storage.cleaner.grouping import Source, group
from storage.cleaner.metrics import CleanerMetrics, CleaningStats
from storage.cleaner.session import GroupDone, Mapped, PassRequest
from storage.txn_index import AbortedTxn

if TYPE_CHECKING:
    from storage.log_manager import LogManager
    from storage.partition_log import PartitionLog
    from storage.segment import Segment

logger = logging.getLogger(__name__)

Key = tuple[str, int]


class CleaningAborted(Exception):
    """The pass cannot go on: the log was cut, closed, paused, or is no longer compacted."""


@dataclass(slots=True)
class CleanerSettings:
    """log.cleaner.*, for one thread."""

    memory_bytes: int = 128 << 20
    load_factor: float = 0.9
    window_bytes: int = 256 << 10
    bytes_per_second: float = float("inf")


@dataclass(slots=True)
class Cleaning:
    """A pass under way, as the broker sees it."""

    dirty: DirtyLog
    request: PassRequest
    stats: CleaningStats
    cuts: int
    segments: list[Segment]  # those below the end of the round, once that is known
    groups: list[list[Source]] = field(default_factory=list)

    @property
    def log(self) -> PartitionLog:
        return self.dirty.log


class CleanerManager:
    """See the module. Times are the wall clock's."""

    def __init__(self, logs: LogManager, now_ms: Callable[[], int]) -> None:
        self._logs = logs
        self._now_ms = now_ms
        self._running: dict[Key, None] = {}
        self._paused: dict[Key, int] = {}
        self._uncleanable: dict[tuple[str, Key], None] = {}  # directory and partition
        self.metrics = CleanerMetrics({})

    # --- choosing -------------------------------------------------------------------------------------------

    def candidates(self) -> Iterator[DirtyLog]:
        """Weigh one log after the other, so that the caller can pause. Raises OSError."""
        now_ms = self._now_ms()
        for log in list(self._logs):
            if self._may_clean(log):
                yield choice.assess(log, self._clean_offset(log), now_ms)

    def choose(self, candidates: Iterable[DirtyLog]) -> DirtyLog | None:
        """The dirtiest log that is due; it counts as running until `done`."""
        still = [each for each in candidates if self._may_clean(each.log)]
        metrics = self.metrics
        metrics.last_run_ms = self._now_ms()
        metrics.max_compaction_delay_ms = max((each.delay_ms for each in still), default=0)
        metrics.max_dirty_ratio = max((each.ratio for each in still), default=0.0)
        chosen = choice.dirtiest(still)
        if chosen is not None:
            self._running[_key(chosen.log)] = None
        return chosen

    def _may_clean(self, log: PartitionLog) -> bool:
        key = _key(log)
        return (
            log.config.compacted
            and len(log.local.segments) > 1
            and not log.closed
            and not log.directory.offline
            and key not in self._running
            and key not in self._paused
            and (log.directory.path, key) not in self._uncleanable
        )

    def _clean_offset(self, log: PartitionLog) -> int | None:
        return log.directory.clean_offsets.get(_key(log))

    def done(self, log: PartitionLog) -> None:
        """The pass ended, however it did."""
        self._running.pop(_key(log), None)

    def is_running(self, key: Key) -> bool:
        return key in self._running

    # --- pauses and failures --------------------------------------------------------------------------------

    def pause(self, key: Key) -> None:
        """Keep a partition from being cleaned; once `is_running` is false nothing touches its files."""
        self._paused[key] = self._paused.get(key, 0) + 1

    def resume(self, key: Key) -> None:
        """Take one pause back."""
        left = self._paused.get(key, 0) - 1
        if left > 0:
            self._paused[key] = left
        else:
            self._paused.pop(key, None)

    def set_aside(self, log: PartitionLog, error: Exception) -> None:
        """Cleaning failed in a way that would only repeat itself."""
        logger.warning(
            "Cleaning %s failed; it is not cleaned any more until the broker restarts: %s", log.name, error
        )
        self._uncleanable[log.directory.path, _key(log)] = None

    @property
    def uncleanable(self) -> list[Key]:
        """Partitions that are set aside and still here."""
        return [key for path, key in self._uncleanable if self._is_here(path, key)]

    def _is_here(self, path: str, key: Key) -> bool:
        log = self._logs.get(*key)
        return log is not None and log.directory.path == path

    @property
    def uncleanable_bytes(self) -> int:
        """Dirty bytes of the partitions that are set aside."""
        now_ms, total = self._now_ms(), 0
        for key in self.uncleanable:
            log = self._logs.get(*key)
            if log is not None and not log.closed:
                total += choice.assess(log, self._clean_offset(log), now_ms).cleanable_bytes
        return total

    # --- a pass ---------------------------------------------------------------------------------------------

    def begin(self, dirty: DirtyLog, settings: CleanerSettings) -> Cleaning:
        """What a worker has to be told. Raises OSError."""
        log, now_ms = dirty.log, self._now_ms()
        segments = [s for s in log.local.segments if s.base_offset < dirty.first_uncleanable]
        sources = [_source(segment, log) for segment in segments]
        first = max((n for n, s in enumerate(sources) if s.base_offset <= dirty.first_dirty), default=0)
        clean = [source for source in sources if source.base_offset < dirty.first_dirty]
        retention = log.config.delete_retention_ms
        request = PassRequest(
            directory=log.local.directory,
            dirty=sources[first:],
            first_dirty=dirty.first_dirty,
            first_uncleanable=dirty.first_uncleanable,
            aborted=_aborted(log, dirty.first_uncleanable),
            now_ms=now_ms,
            delete_retention_ms=retention,
            index_interval_bytes=log.config.index_interval_bytes,
            legacy_horizon_ms=clean[-1].mtime_ms - retention if clean else 0,
            memory_bytes=settings.memory_bytes,
            load_factor=settings.load_factor,
            window_bytes=settings.window_bytes,
            bytes_per_second=settings.bytes_per_second,
        )
        stats = CleaningStats(log.name, dirty.first_dirty, dirty.first_dirty)
        return Cleaning(dirty, request, stats, log.cuts, segments)

    def mapped(self, cleaning: Cleaning, mapped: Mapped) -> None:
        """The map is built: plan the groups."""
        self.check(cleaning)
        log, stats = cleaning.log, cleaning.stats
        stats.end_offset = mapped.end_offset
        stats.map_bytes, stats.map_messages = mapped.bytes_read, mapped.messages_read
        stats.map_utilization = mapped.utilization
        cleaning.segments = [s for s in cleaning.segments if s.base_offset < mapped.end_offset]
        cleaning.groups = group(
            [_source(segment, log) for segment in cleaning.segments],
            cleaning.dirty.first_uncleanable,
            log.config.segment_bytes,
            log.config.segment_index_bytes,
        )

    def last_records(self, cleaning: Cleaning) -> dict[int, LastRecord]:
        """What must stay of each active producer, as far as it may lie in what is cleaned."""
        self.check(cleaning)
        end = cleaning.stats.end_offset
        return {
            producer_id: LastRecord(entry.last_offset, entry.epoch)
            for producer_id, entry in cleaning.log.producers.entries.items()
            if entry.last_offset < end
        }

    def swap_in(self, cleaning: Cleaning, sources: list[Source], done: GroupDone) -> Callable[[], None]:
        """Put a finished group into the log; the call returned syncs the directory, on any thread.

        Raises CleaningAborted, OSError.
        """
        self.check(cleaning)
        log, local = cleaning.log, cleaning.log.local
        bases = dict.fromkeys(source.base_offset for source in sources)
        old = [segment for segment in cleaning.segments if segment.base_offset in bases]
        present = {id(segment): None for segment in local.segments}
        if any(id(segment) not in present for segment in old):
            raise CleaningAborted(f"segments of {log.name} were deleted meanwhile")
        try:
            swap.swap_in(local, done.segment.base_offset, old, self._now_ms())
        except OSError as error:
            log.directory.fail(error)
            raise
        stats = cleaning.stats
        stats.start_bytes += done.segment.bytes_read
        stats.end_bytes += done.segment.size
        stats.start_messages += done.stats.messages_read
        stats.end_messages += done.stats.messages_kept
        stats.invalid_messages += done.stats.invalid_messages
        stats.left_whole += done.stats.left_whole
        files, directory = local.files, local.directory
        return lambda: files.sync_dir(directory)

    def finish(self, cleaning: Cleaning, thread: int) -> None:
        """All groups are in: the log is clean up to the round's end. The caller writes the checkpoint."""
        self.check(cleaning)
        stats = cleaning.stats
        cleaning.log.directory.clean_offsets.set(_key(cleaning.log), stats.end_offset)
        self.metrics.last[thread] = stats
        logger.info("%s", stats.line())
        if stats.invalid_messages:
            logger.warning("%s: %d messages without a key were dropped", stats.name, stats.invalid_messages)

    def check(self, cleaning: Cleaning) -> None:
        """Raise CleaningAborted if the pass must not go on."""
        log = cleaning.log
        if log.closed or log.directory.offline:
            raise CleaningAborted(f"{log.name} is closed")
        if log.cuts != cleaning.cuts:
            raise CleaningAborted(f"{log.name} was cut")
        if _key(log) in self._paused:
            raise CleaningAborted(f"cleaning of {log.name} is paused")
        if not log.config.compacted:
            raise CleaningAborted(f"{log.name} is no longer compacted")

    def abandon(self, cleaning: Cleaning) -> None:
        """Take away what a pass left behind that was broken off."""
        log = cleaning.log
        if not log.closed and not log.directory.offline:
            swap.remove_cleaned(log.local.files, log.local.directory)

    def retained_logs(self) -> Iterator[PartitionLog]:
        """Compacted logs on which retention may run now, one after the other.

        It is left to the cleaner, so that it does not remove what a pass is reading.
        """
        for log in list(self._logs):
            online = not log.closed and not log.directory.offline
            if log.config.compacted and online and _key(log) not in self._running:
                yield log


def _key(log: PartitionLog) -> Key:
    return log.topic, log.partition


def _source(segment: Segment, log: PartitionLog) -> Source:
    path = segment.path(".log")
    return Source(
        path,
        segment.base_offset,
        segment.size,
        segment.offset_index.size_bytes,
        segment.time_index.size_bytes,
        log.local.files.mtime_ms(path),
    )


def _aborted(log: PartitionLog, upper_offset: int) -> list[AbortedTxn]:
    return log.aborted(log.local.segments.first.base_offset, upper_offset)

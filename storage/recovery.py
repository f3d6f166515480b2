"""Opening a log: what a crash left behind is found, cut and rebuilt.

After a clean stop nothing is read but the ends of the files; where one is not what it should be, its
segment is read as after a crash. After anything else the segments from the one that holds the recovery point
on are read wholly (`segment_scan.py`, in worker processes): every CRC is checked, both indexes, the leader
epochs and the producers are rebuilt, and the log is cut at the first batch that is torn or wrong; segments
behind the cut go. Segments below the recovery point are trusted, as Kafka trusts them; one whose indexes
cannot be right gets new ones, and only itself is cut where it is damaged. A segment with offsets too far
above its base is split first (`overflow.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from storage import names, scan
from storage.append import replay_batch
from storage.errors import CorruptLog
from storage.index_check import index_problem
from storage.leftovers import open_segments, remove_leftovers
from storage.local_log import LocalLog
from storage.offset_index import RELATIVE_MAX
from storage.overflow import overflows, split
from storage.producers.settings import ProducerSettings
from storage.producers.state import ProducerState
from storage.segment import Segment
from storage.segment_scan import ScannedSegment, ScanRequest, scan_log
from storage.txn_index import AbortedTxn

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)
_FAR = 1 << 62  # an end that is not known yet


class Loading:
    """A log on its way in: `requests` are the files that have to be read, `finish` takes what they hold.

    `log_start` and `recovery_point` come from the checkpoints (0 where there is none). Raises OSError,
    ValueError for a file name that no log has.
    """

    def __init__(
        self, log: PartitionLog, *, clean: bool, recovery_point: int, log_start: int, now_ms: int
    ) -> None:
        self.log, self._local = log, log.local
        self._clean, self._now_ms = clean, now_ms
        self._recovery_point, self._log_start = recovery_point, log_start
        self._open()

    def _open(self) -> None:
        """Look at the files that are there, and work out which have to be read."""
        local = self._local
        found = remove_leftovers(local.files, local.directory)
        self._present = frozenset(found)
        for segment in open_segments(local, found, self._now_ms):
            local.segments.add(segment)
        if not len(local.segments):
            local.new_segment(self._log_start, self._now_ms)
        self._start = max(self._log_start, local.segments.first.base_offset)
        self._end = -1  # of the log, once it is known
        self._unsynced = self._find_unsynced()
        self._damaged = self._find_damaged()
        interval = local.config.index_interval_bytes
        self.requests = [
            ScanRequest(segment.path(names.LOG), segment.base_offset, segment.size, interval)
            for segment in [*self._damaged, *self._unsynced]
        ]

    def has(self, name: str) -> bool:
        """Whether the directory holds such a file."""
        return name in self._present

    def _find_unsynced(self) -> list[Segment]:
        """The segments that may end anywhere: at most the active one after a clean stop."""
        local, active = self._local, self._local.segments.active
        if not self._clean:
            return local.segments.from_offset(self._recovery_point)
        if active.size and (problem := index_problem(local.files, active, self._present, _FAR)):
            logger.warning("%s: its index is made anew: %s", active.path(names.LOG), problem)
            return [active]
        if not active.has_sound_index():
            logger.warning("%s: its index is damaged and made anew", active.path(names.LOG))
            return [active]
        try:
            self._end = active.find_end_offset()
            if self._end - 1 - active.base_offset > RELATIVE_MAX:
                return [active]
        except CorruptLog as error:
            logger.warning("%s was whole when it was closed: %s", active.path(names.LOG), error)
            return [active]
        return []

    def _find_damaged(self) -> list[Segment]:
        """Segments below the recovery point whose indexes cannot be right."""
        local, found = self._local, []
        known = list(local.segments)
        for number, segment in enumerate(known[: len(known) - max(len(self._unsynced), 1)]):
            following = known[number + 1].base_offset
            problem = index_problem(local.files, segment, self._present, following) if segment.size else None
            if problem is None and following - segment.base_offset > RELATIVE_MAX and overflows(segment):
                problem = "its offsets do not fit them"
            if problem is not None:
                logger.warning("%s: its indexes are made anew: %s", segment.path(names.LOG), problem)
                found.append(segment)
        return found

    def finish(self, scanned: Sequence[ScannedSegment]) -> None:
        """Fill in the log; `scanned` answers `requests` in their order. Raises OSError."""
        scanned = self._split(scanned)
        log, local, start = self.log, self._local, self._start
        for segment, found in zip(self._damaged, scanned, strict=False):
            self._repair(segment, found)
        producers: ProducerState | None = None
        indexed = names.segment_file(local.segments.active.base_offset, names.OFFSET_INDEX) in self._present
        untouched = self._clean and not self.requests and indexed
        if self._unsynced:
            producers = self._recover(scanned[len(self._damaged) :])
            self._end = local.segments.active.find_end_offset()
        end = self._end
        if self._clean and not self._unsynced:
            local.recovery_point = end
            local.mark_known()
            if end > local.segments.first.base_offset and not _has_snapshot(self._present):
                producers = self._nobody(end)
        else:
            local.recovery_point = end if self._clean else min(self._recovery_point, end)
        if end < start:
            logger.warning("%s ends at %d, below its start %d: it begins anew there", log.name, end, start)
            local.restart_at(start, self._now_ms)
            log.leader_epochs.clear()
            producers = ProducerState(local.files, local.directory, log.directory.producer_settings)
            producers.clear(start)
            end, untouched = start, False
        if not self._clean:
            log.leader_epochs.doubt()
        log.leader_epochs.restrict(start, end)
        log.adopt_producers(producers)
        local.flushed_position = local.segments.active.size if self._clean else 0
        log.opened(start, end)
        if untouched:
            log.clean_end = end

    def _split(self, scanned: Sequence[ScannedSegment]) -> Sequence[ScannedSegment]:
        """Split segments that overflow and look at everything anew; what `requests` have as answers then."""
        local = self._local
        known = [*self._damaged, *self._unsynced]
        too_long = [segment for segment, found in zip(known, scanned, strict=True) if found.overflows]
        if not too_long:
            return scanned
        for segment in too_long:
            bases = split(local.files, segment)
            logger.warning(
                "%s: its offsets do not fit an index; it is split at %s", segment.path(names.LOG), bases
            )
        local.close_files()
        for segment in list(local.segments):
            local.segments.remove(segment)
        self._open()
        return [scan_log(local.files, request) for request in self.requests]

    def _nobody(self, end: int) -> ProducerState:
        """A log closed without any snapshot knows no producers, as in Kafka: it is not read for them.

        The snapshot that is written saves the next recovery from reading all of it.
        """
        local = self._local
        producers = ProducerState(local.files, local.directory, self.log.directory.producer_settings)
        producers.map_end_offset = end
        producers.take_snapshot()
        return producers

    def _recover(self, scanned: Sequence[ScannedSegment]) -> ProducerState:
        """Take over the segments that were read, and cut the log where it stops being right.

        Returns the producers' state at the new end, of which a snapshot is taken.
        """
        local, segments = self._local, self._unsynced
        producers = self._producers_at(segments[0])
        before = local.segments.floor(segments[0].base_offset - 1)
        if before is not None:
            try:
                before.complete_time_index()
            except CorruptLog as error:
                logger.warning("%s is damaged: %s", before.path(names.LOG), error)
            if not self.log.leader_epochs.entries:
                self._find_epochs(segments[0].base_offset)
        for snapshot in producers.snapshot_offsets():
            if snapshot > segments[0].base_offset:
                local.files.remove(producers.path_of(snapshot))
        for number, (segment, found) in enumerate(zip(segments, scanned, strict=True)):
            cut = self._take_over(segment, found, producers)
            later = segments[number + 1 :]
            if later or cut:
                segment.seal()
            if cut:
                for lost in later:
                    logger.warning("%s: segment %d behind the cut goes", local.directory, lost.base_offset)
                local.set_aside(later, self._now_ms)
                if later:  # they must not come back behind what is written next
                    local.files.sync_dir(local.directory)
                break
            if later:
                producers.map_end_offset = max(producers.map_end_offset, later[0].base_offset)
            producers.take_snapshot()
        producers.take_snapshot()
        return producers

    def _repair(self, segment: Segment, found: ScannedSegment) -> None:
        """Give a segment below the recovery point new indexes, whole or not at all."""
        tell_cut(segment, found)
        aborted: list[AbortedTxn] = []
        if any(marker for _, marker in found.producers):
            producers = self._producers_at(segment, keep_newer=True)
            for facts, marker in found.producers:
                replay_batch(producers, facts, marker)
            aborted = producers.settle()
        segment.replace_indexes(found, aborted)

    def _producers_at(self, segment: Segment, *, keep_newer: bool = False) -> ProducerState:
        settings = self.log.directory.producer_settings
        return load_producers(self._local, segment.base_offset, settings, keep_newer=keep_newer)

    def _find_epochs(self, end_offset: int) -> None:
        """Read the epochs of what was synced from the headers: a power cut can take their whole file.

        Nothing to find in a log that was written before there were epochs.
        """
        found = [(-1, 0)]
        for segment in self._local.segments:
            if segment.base_offset >= end_offset:
                break
            try:
                for facts in scan.scan(segment.handle, 0, segment.size, scan.LOCATE_WINDOW):
                    if facts.leader_epoch < 0:
                        return
                    if facts.leader_epoch > found[-1][0]:
                        found.append((facts.leader_epoch, facts.base_offset))
            except CorruptLog as error:
                logger.warning("%s is damaged: %s", segment.path(names.LOG), error)
        self.log.leader_epochs.assign_all(found[1:])

    def _take_over(self, segment: Segment, found: ScannedSegment, producers: ProducerState) -> int:
        """Put what was found into the files and the state; the bytes that were cut off."""
        epochs = self.log.leader_epochs
        epochs.assign_all(entry for entry in found.epochs if entry[0] > epochs.latest_epoch)
        for facts, marker in found.producers:
            replay_batch(producers, facts, marker)
        segment.txn_index.refill(producers.settle())
        producers.transactions.replicated(self.log.high_watermark)
        producers.map_end_offset = max(producers.map_end_offset, found.next_offset)
        tell_cut(segment, found)
        return segment.rebuilt(found)


def _has_snapshot(present: Collection[str]) -> bool:
    return any(name.endswith(names.SNAPSHOT) for name in present)


def tell_cut(segment: Segment, found: ScannedSegment) -> None:
    """The line about bytes that go."""
    if not found.whole:
        logger.warning(
            "%s: cut %d bytes at position %d, offset %d: %s",
            segment.path(names.LOG), found.size - found.end, found.end, found.next_offset, found.reason,
        )  # fmt: skip


def load_producers(
    local: LocalLog, end_offset: int, settings: ProducerSettings, *, keep_newer: bool = False
) -> ProducerState:
    """The producers as of `end_offset`: the newest snapshot below it, and the log from there on.

    Snapshots above it are removed unless `keep_newer`: they are of a log that was longer.
    """
    producers = ProducerState(local.files, local.directory, settings)
    offset = producers.load(local.segments.first.base_offset, end_offset, keep_newer=keep_newer)
    for segment in local.segments.from_offset(offset):
        if offset >= end_offset or segment.base_offset >= end_offset:
            break
        try:
            _replay(segment, producers, offset, end_offset)
        except CorruptLog as error:
            logger.warning(
                "%s is damaged, of its producers some are unknown: %s", segment.path(names.LOG), error
            )
    producers.map_end_offset = end_offset
    producers.settle()
    return producers


def _replay(segment: Segment, producers: ProducerState, offset: int, end_offset: int) -> None:
    """Let the state follow the segment's batches in [offset, end_offset). Raises CorruptLog."""
    _, position = segment.offset_index.lookup(offset)
    for facts in scan.scan(segment.handle, position, segment.size):
        if facts.last_offset < offset:
            continue
        if facts.base_offset >= end_offset:
            break
        if facts.producer_id >= 0:
            batch = segment.handle.read_at(facts.position, facts.size) if facts.control else b""
            replay_batch(producers, facts, batch)

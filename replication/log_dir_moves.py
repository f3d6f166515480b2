"""One partition's way to another log directory of its broker (KIP-113): copying, and when it is there.

The copy is a log of its own (`storage/future_logs.py`) that follows the partition's log as a follower follows
its leader, batch by batch, offsets as they are. Here is what the steps do; whoever has the timer, the threads
and the throttle calls them in turn: `take`, `Piece.load` on a thread, `append`; and when nothing is left,
`prepare`, `catch_up`, `ready` and `finish`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from replication.partition import Partition
from runtime.files import FileRegion
from storage.append import NOT_HELD, FollowerBatch, analyse, append_analysed
from storage.read import LogSlice

if TYPE_CHECKING:
    from runtime.clock import Clock
    from storage.flush_job import FlushJob
    from storage.log_manager import LogManager
    from storage.partition_log import PartitionLog

INLINE_BYTES = (
    256 << 10
)  # what may be copied on the loop, so that writers cannot keep a copy from catching up


class Piece:
    """Some batches that the copy lacks. `release` is called once, whatever became of it."""

    __slots__ = ("_slice", "data", "found", "length")

    def __init__(self, found: LogSlice) -> None:
        self._slice = found
        self.length = found.length
        self.data = b""
        self.found: list[FollowerBatch] = []
        if isinstance(found.data, FileRegion):
            found.data.handle.acquire_fd()

    def load(self) -> None:
        """Read and check the batches, on any thread. Raises OSError, AppendRefused (2) for damaged ones."""
        self.data = self._slice.to_bytes()
        self.found = analyse(memoryview(self.data))

    def release(self) -> None:
        """Give the file's descriptor up."""
        if isinstance(self._slice.data, FileRegion):
            self._slice.data.handle.release_fd()


class Move:
    """See the module. All methods may raise StorageError; a failed disk has its directory offline then."""

    def __init__(self, partition: Partition, future: PartitionLog, logs: LogManager, clock: Clock) -> None:
        self.partition = partition
        self.future = future
        self._logs, self._clock = logs, clock
        self._start_on_disk = -1
        self._seen_end = -1  # of the log, when the last piece was taken
        self.tries = 0  # how often the copy had everything for a moment
        self._reconcile()

    @property
    def key(self) -> tuple[str, int]:
        return self.partition.topic, self.partition.index

    def is_over(self) -> bool:
        """Whether there is nothing to move any more: it was called off, or a disk failed."""
        return (
            self._logs.futures.get(*self.key) is not self.future
            or self.partition.removed
            or self.partition.offline
            or self.future.closed
        )

    def _reconcile(self) -> None:
        """A copy from before a restart may hold what its log has lost since: cut it where they part."""
        future, current = self.future, self.partition.log
        keep = min(future.end_offset, current.end_offset)
        theirs = dict(current.leader_epochs.entries)
        ours = future.leader_epochs.entries
        if ours:
            common = [epoch for epoch, _ in ours if epoch in theirs]
            if common:
                ends = (
                    log.leader_epochs.end_offset_for(common[-1], log.end_offset).end_offset
                    for log in (future, current)
                )
                keep = min(keep, *ends)
            else:
                keep = future.local.segments.first.base_offset
        if keep < future.end_offset:
            future.truncate_to(keep, self._clock.now_ms())
        self._follow_start()

    def _follow_start(self) -> None:
        """Records may have been deleted at the start of the log."""
        future, start = self.future, self.partition.log.start_offset
        if start > future.end_offset:
            future.truncate_fully(start, self._clock.now_ms())
        future.move_start(start)

    def take(self, max_bytes: int) -> Piece | None:
        """The next batches to copy, at most so many bytes but at least one; None where the copy has all."""
        future, current = self.future, self.partition.log
        self._follow_start()
        self._seen_end = current.end_offset
        while future.end_offset < current.end_offset:
            found = current.read(future.end_offset, max_bytes, current.end_offset)
            if found.length:
                return Piece(found)
            self._skip_to(current.end_offset)
        return None

    def _skip_to(self, end_offset: int) -> None:
        """The log ends with a gap that compaction or a cut left: nothing more to copy."""
        future, now_ms = self.future, self._clock.now_ms()
        if future.local.segments.size_bytes == 0:
            future.truncate_fully(end_offset, now_ms, future.start_offset)
        else:
            future.next_offset = end_offset
            future.roll(now_ms)

    def append(self, piece: Piece) -> None:
        """Write a loaded piece to the copy."""
        future, now_ms = self.future, self._clock.now_ms()
        if not piece.found:
            return
        first = piece.found[0].facts.base_offset
        start = future.start_offset
        if first < future.end_offset and future.local.segments.size_bytes == 0:
            # The start lies within a batch, which comes whole.
            future.truncate_fully(first, now_ms)
        append_analysed(future, memoryview(piece.data), piece.found, now_ms)
        future.move_start(start)
        future.set_high_watermark(self.partition.log.high_watermark)

    def is_near(self) -> bool:
        """Whether the copy has all that the log had when the last piece was taken."""
        return self.future.end_offset >= self._seen_end

    def prepare(self) -> tuple[FlushJob, Callable[[], None]]:
        """What is done on a thread before `finish`: a flush of the copy, and a call behind it."""
        self._start_on_disk = self.future.start_offset
        try:
            return self._logs.futures.prepare_job(self.future)
        except OSError as error:
            self.future.failed(error, "flush")

    def catch_up(self) -> bool:
        """Copy here and now what was written meanwhile, if it is little; whether the copy has all then."""
        current = self.partition.log
        left = INLINE_BYTES
        while left > 0 and (piece := self.take(left)) is not None:
            try:
                piece.load()
            except OSError as error:
                current.failed(error, "read")
            finally:
                piece.release()
            self.append(piece)
            left -= piece.length
        return self.future.end_offset == current.end_offset

    def ready(self) -> bool:
        """Whether `finish` may be called: nothing is under way, and what was synced there is synced here."""
        current, future = self.partition.log, self.future
        return (
            not current.staged
            and current.next_offset == current.end_offset == future.end_offset
            and current.hold_from == NOT_HELD
            and future.recovery_point >= current.recovery_point
            and future.start_offset == current.start_offset == self._start_on_disk
        )

    def insist(self) -> bool:
        """`ready`, for a log that is written all the time: syncs what is missing here and now."""
        current, future = self.partition.log, self.future
        if current.staged or not self.catch_up() or future.start_offset != self._start_on_disk:
            return False
        future.flush()
        return current.next_offset == current.end_offset

    def finish(self) -> Callable[[], None]:
        """Change over to the copy; the call returned makes it durable, on a thread. See `ready`."""
        settle = self._logs.futures.replace_current(*self.key)
        self.partition.adopt_log(self.future)
        return settle

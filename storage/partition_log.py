"""`PartitionLog`: the log of one partition, the door that the upper layers use.

Offsets: `start_offset` is the first one readable, `end_offset` (exclusive) the end of what is written,
`next_offset` what the next batch gets, staged ones included; start <= high watermark <= end <= next.
Appends are staged and written once a turn (`append.py`); readers see a batch only after its write returned.
Nothing here awaits and, but for what says so, nothing waits for the disk. A log is opened without reading its
indexes, producers or epochs; the first append or read that needs them does.
"""

from __future__ import annotations

from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from protocol.records.rules import Checked
from runtime.files import Buffer, FileHandle
from storage import append, names, read, recovery, time_lookup
from storage.append import Appended
from storage.errors import AppendRefused, OffsetOutOfRange, StorageError, StorageFailed
from storage.flush_job import FlushJob
from storage.leader_epochs import LeaderEpochs
from storage.local_log import LocalLog
from storage.log_config import FOREVER, LogConfig
from storage.offset_index import RELATIVE_MAX
from storage.partition_metadata import write_topic_id
from storage.producers.state import ProducerState
from storage.read import LogSlice
from storage.segment import UNKNOWN, Segment
from storage.tail import BATCH_BYTES_MAX, Tail, TailBudget
from storage.time_lookup import TimedOffset

if TYPE_CHECKING:
    from storage.log_dirs import LogDir

_HEAD = Struct(">qii")  # base offset, length, leader epoch: the part of the header outside the CRC
_NO_ROLL = FOREVER
_appended = tuple.__new__  # half the price of the named tuple's own constructor


class PartitionLog:
    """See the module. Made by the log manager."""

    __slots__ = (
        "_last_offset_max",
        "_prepared",
        "_producers",
        "_roll_due",
        "_roll_timestamp",
        "_roll_wall_ms",
        "_size_limit",
        "active",
        "clean_end",
        "closed",
        "config",
        "cuts",
        "directory",
        "end_offset",
        "epoch",
        "failures",
        "handle",
        "high_watermark",
        "leader_epochs",
        "local",
        "name",
        "next_offset",
        "partition",
        "position",
        "staged",
        "start_offset",
        "tail",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        directory: LogDir,
        local: LocalLog,
        topic: str,
        partition: int,
        topic_id: bytes,
        budget: TailBudget,
    ) -> None:
        """A log whose segments are loaded and of which nothing else is known; recovery.py fills it in."""
        self.directory = directory
        self.local = local
        self.config = local.config
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.name = f"{topic}-{partition}"
        self.start_offset = self.end_offset = self.next_offset = self.high_watermark = 0
        self.leader_epochs = LeaderEpochs(local.files, f"{local.directory}/{names.LEADER_EPOCHS}")
        self._producers: ProducerState | None = None
        self.tail = Tail(budget, 0, 0)
        self.active: Segment
        self.handle: FileHandle
        self.position = 0  # file position of the next batch, staged ones included
        self.staged: list[tuple[Buffer, int, int, int]] = []  # part, size, last offset, maxTimestamp
        self.cuts = 0  # how often the log was loaded or cut; a flush begun before says nothing after
        self.failures = 0  # failed writes so far; tells a turn's callers whether theirs was one
        self.closed = False
        self.clean_end = -1  # the end up to which the files are as a clean stop leaves them
        self.epoch = -1  # of the last append; -1 makes the next one look
        self._forget_plan()

    # --- state ----------------------------------------------------------------------------------------------

    def opened(self, start_offset: int, end_offset: int) -> None:
        """Set the bounds after loading or cutting."""
        self.start_offset = start_offset
        self.end_offset = self.next_offset = end_offset
        self.high_watermark = min(max(self.high_watermark, start_offset), end_offset)
        self.active = self.local.segments.active
        self.position = self.active.size
        self.tail.reset(end_offset, self.position)
        self.epoch = self.clean_end = -1
        self.cuts += 1
        self._forget_plan()

    @property
    def last_stable_offset(self) -> int:
        """What a read_committed consumer may read up to (exclusive)."""
        return self.high_watermark

    @property
    def size_bytes(self) -> int:
        return self.local.segments.size_bytes

    @property
    def recovery_point(self) -> int:
        return self.local.recovery_point

    @property
    def has_producers(self) -> bool:
        """Whether the producers' state was needed so far, and is therefore in memory."""
        return self._producers is not None

    @property
    def producers(self) -> ProducerState:
        if self._producers is None:
            self._producers = recovery.load_producers(self.local, self.end_offset)
        return self._producers

    def adopt_producers(self, producers: ProducerState | None) -> None:
        """Replace the state: by one that recovery built, or by None to have it loaded when needed."""
        self._producers = producers

    def set_high_watermark(self, offset: int) -> int:
        """Move the high watermark, kept within the log; its new value."""
        self.high_watermark = min(max(offset, self.start_offset), self.end_offset)
        return self.high_watermark

    def update_config(self, config: LogConfig) -> None:
        """Use new settings from the next append on."""
        self.config = self.local.config = config
        self._forget_plan()

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Note which topic the directory belongs to, on disk too."""
        write_topic_id(self.local.files, f"{self.local.directory}/{names.PARTITION_METADATA}", topic_id)
        self.topic_id = topic_id

    def assign_epoch(self, leader_epoch: int) -> None:
        """A leader of this epoch writes from the end of the log on; a small file tells if that is news."""
        self.check_online()
        try:
            self.leader_epochs.assign(leader_epoch, self.next_offset)
        except OSError as error:
            append.fail(self, error, "epoch assignment")
        self.epoch = leader_epoch

    def check_online(self) -> None:
        """Raise StorageFailed where the directory is out of service or the log closed."""
        if self.directory.offline or self.closed:
            why = "is closed" if self.closed else f"is on {self.directory.path}, which is offline"
            raise StorageFailed(f"the log of {self.name} {why}", offline=True)

    # --- appends --------------------------------------------------------------------------------------------

    def append_as_leader(
        self, batch: Checked, leader_epoch: int, now_ms: int, check_order: bool = True
    ) -> Appended:
        """Stage one checked batch; `write_pending` writes it.

        The offset and `leader_epoch` are put into the batch's header in place. A batch of at most 16 KiB is
        copied now, or kept if it is a bytearray that holds nothing else; a larger one must stay untouched
        until `write_pending`. Raises AppendRefused (45, 47, 18) or StorageFailed (56).
        """
        if self.directory.offline or self.closed:
            self.check_online()
        if leader_epoch != self.epoch:
            self.assign_epoch(leader_epoch)
        buf, at, size, _, delta, _, timestamp, producer_id, epoch, sequence, append_time = batch
        position = self.position
        base = self.next_offset
        last = base + delta
        if (
            position + size > self._size_limit
            or timestamp > self._roll_timestamp
            or last > self._last_offset_max
            or now_ms > self._roll_wall_ms
        ):
            self.make_room(size, timestamp, last, now_ms)
            position = self.position
        if producer_id >= 0:
            known = self.producers.stage(producer_id, epoch, sequence, last, delta, timestamp, check_order)
            if known is not None:
                return Appended(known[2] - known[3], known[2], known[4], True)
        if position == 0:
            self.start_segment(timestamp, now_ms)
        _HEAD.pack_into(buf, at, base, size - 12, leader_epoch)
        part: Buffer
        if at == 0 and len(buf) == size and type(buf) is bytearray:
            part = buf
        elif size <= BATCH_BYTES_MAX:
            part = bytes(buf[at : at + size])
        else:
            part = memoryview(buf)[at : at + size]
        self.staged.append((part, size, last, timestamp))
        self.position = position + size
        self.next_offset = last + 1
        return _appended(Appended, (base, last, append_time, False))

    def write_pending(self) -> None:
        """Write what is staged, with one system call; afterwards readers can see it.

        Raises StorageFailed if it could not be written: then nothing of it remains.
        """
        if self.staged:
            if self.directory.offline or self.closed:
                append.undo_staged(self)
                self.check_online()
            append.write_staged(self)

    def append_as_follower(self, records: Buffer, now_ms: int) -> int:
        """Append fetched batches as they are; the new end offset.

        Batches must continue the log with increasing last offsets; gaps upward are legal. CRCs are checked,
        records and sequences are not. Raises AppendRefused, UnexpectedAppendOffset, StorageFailed.
        """
        return append.append_fetched(self, memoryview(records), now_ms)

    # --- rolling --------------------------------------------------------------------------------------------

    def _forget_plan(self) -> None:
        """The next append looks anew at when the active segment has to be closed."""
        self._prepared = self._roll_due = False
        self._size_limit = self._roll_timestamp = self._last_offset_max = self._roll_wall_ms = -1

    def start_segment(self, timestamp: int, now_ms: int) -> None:
        """The first batch of the active segment is being staged: its timestamp counts the segment's age."""
        self.active.first_timestamp = timestamp
        self.active.created_ms = now_ms
        self.plan_roll()

    def plan_roll(self) -> None:
        """Work out the limits of the active segment, so that an append compares four numbers."""
        segment, config = self.active, self.config
        self._size_limit = config.segment_bytes
        self._last_offset_max = segment.base_offset + RELATIVE_MAX
        self._roll_timestamp = self._roll_wall_ms = _NO_ROLL
        first = segment.first_timestamp
        if first != UNKNOWN:
            age = config.roll_ms - segment.jitter_ms
            if first >= 0:
                self._roll_timestamp = first + age
            else:
                self._roll_wall_ms = segment.created_ms + age

    def roll_before_next(self) -> None:
        """The active segment's indexes are full."""
        self._roll_due = True
        self._size_limit = -1

    def make_room(self, size: int, timestamp: int, last: int, now_ms: int) -> None:
        """Roll if this append must not go into the active segment."""
        try:
            if not self._prepared:
                self.active.activate()
                self.handle = self.active.handle
                self.active.read_first_timestamp()
                self._prepared = True
                self.plan_roll()
                if self.active.size and self.active.indexes_full(self.config.segment_index_bytes):
                    self.roll_before_next()
            if size > self.config.segment_bytes:
                raise AppendRefused(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"Message batch size is {size} bytes in append to partition {self.name}, "
                    f"which exceeds the maximum configured segment size of {self.config.segment_bytes}.",
                )
            if (self._roll_due and self.position) or (
                self.position + size > self.config.segment_bytes
                or timestamp > self._roll_timestamp
                or last > self._last_offset_max
                or now_ms > self._roll_wall_ms
            ):
                self.roll(now_ms)
        except OSError as error:
            append.fail(self, error, "roll")

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin one at the next offset; what is staged is written before.

        The old files are synced in the background, after which the recovery point moves. Raises
        StorageFailed.
        """
        if self.staged:
            self.write_pending()
        base = self.next_offset
        try:
            self.local.roll(base, now_ms)
            producers = self.producers
            producers.map_end_offset = base
            producers.take_snapshot()
        except OSError as error:
            append.fail(self, error, "roll")
        finally:
            if self.local.segments.active is not self.active:
                self.active = self.local.segments.active
                self.active.activate()
                self.handle = self.active.handle
                self.position = 0
                self.tail.reset(base, 0)
                self._roll_due = False
                self.plan_roll()
        self.end_offset = base
        self.directory.background(FlushJob(self, base))

    # --- reads ----------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, upto: int, min_one: bool = True) -> LogSlice:
        """Batches from the one that holds `offset` on, of one segment, ending at or below offset `upto`.

        Raises OffsetOutOfRange outside [start_offset, end_offset], StorageFailed.
        """
        if self.directory.offline or self.closed:
            self.check_online()
        try:
            return read.read_log(self, offset, max_bytes, upto, min_one)
        except OSError as error:
            append.fail(self, error, "read")

    def offset_for_timestamp(self, timestamp: int, upto: int) -> TimedOffset | None:
        """The first readable record at or after that time, below `upto`. Any thread; raises StorageError."""
        self.check_online()
        try:
            return time_lookup.offset_for_timestamp(self, timestamp, upto)
        except OSError as error:
            append.fail(self, error, "read")

    def max_timestamp_offset(self, upto: int) -> TimedOffset | None:
        """The first readable record with the greatest timestamp, below `upto`; otherwise as the one above."""
        self.check_online()
        try:
            return time_lookup.max_timestamp_offset(self, upto)
        except OSError as error:
            append.fail(self, error, "read")

    def segment_start_offsets_before(self, timestamp: int, count: int, now_ms: int) -> list[int]:
        """What ListOffsets v0 answers; see time_lookup.py. Any thread; raises StorageError."""
        self.check_online()
        try:
            return time_lookup.start_offsets_before(self, timestamp, count, now_ms)
        except OSError as error:
            append.fail(self, error, "read")

    # --- cutting --------------------------------------------------------------------------------------------

    def delete_records(self, offset: int) -> int:
        """Make `offset` (-1: the high watermark) the first one readable; the new start offset.

        The caller has the manager persist it before answering. Raises StorageError (44), StorageFailed (56),
        OffsetOutOfRange (1).
        """
        self.check_online()
        if self.config.compacted and not self.config.deletes:
            raise StorageError(
                ErrorCode.POLICY_VIOLATION,
                f"records of {self.name} cannot be deleted: cleanup.policy does not contain delete",
            )
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise OffsetOutOfRange(
                f"cannot move the start of {self.name} to {offset}: "
                f"the high watermark is {self.high_watermark}"
            )
        self.move_start(offset)
        return self.start_offset

    def move_start(self, offset: int) -> None:
        """Raise the start offset; files go when `delete_segments_below_start` runs. Raises StorageFailed."""
        if offset > self.start_offset:
            self.start_offset = offset
            self.directory.starts_moved = True
            try:
                self.leader_epochs.truncate_from_start(offset)
            except OSError as error:
                append.fail(self, error, "deletion of records")

    def delete_segments_below_start(self, now_ms: int) -> int:
        """Set aside segments of which nothing is readable any more; how many."""
        segments = list(self.local.segments)
        gone = []
        for segment, following in pairwise(segments):
            if following.base_offset > self.start_offset:
                break
            gone.append(segment)
        if gone:
            producers = self.producers  # loaded while all of the log is there
            self.local.set_aside(gone, now_ms)
            producers.remove_snapshots(self.local.segments.first.base_offset)
        return len(gone)

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Make `offset` the end of the log, dropping whole batches that reach it; whether anything went."""
        self.check_online()
        if offset >= self.end_offset:
            self.leader_epochs.truncate_from_end(self.end_offset)
            return False
        try:
            if offset < self.local.segments.first.base_offset:
                self.truncate_fully(offset, now_ms)
            else:
                self._lower_recovery_point(offset)
                self.local.truncate_to(offset, now_ms)
                self.leader_epochs.truncate_from_end(offset)
                self.opened(min(self.start_offset, offset), offset)
                self._producers = recovery.load_producers(self.local, offset)
        except OSError as error:
            append.fail(self, error, "truncation")
        return True

    def truncate_fully(self, offset: int, now_ms: int, start_offset: int | None = None) -> None:
        """Drop everything and begin at `offset`; `start_offset` may lie below it (a copy of a tiered log)."""
        self.check_online()
        try:
            self._lower_recovery_point(offset)
            self.local.restart_at(offset, now_ms)
            self.leader_epochs.clear()
            producers = ProducerState(self.local.files, self.local.directory)
            producers.clear(offset)
        except OSError as error:
            append.fail(self, error, "truncation")
        self._producers = producers
        self.high_watermark = offset
        self.opened(offset if start_offset is None else start_offset, offset)
        self.high_watermark = offset

    def _lower_recovery_point(self, offset: int) -> None:
        """On disk too, and before anything is cut: what is written next above `offset` was never synced."""
        if offset < self.local.recovery_point:
            self.local.recovery_point = offset
            self.directory.write_recovery_points()

    # --- flushing and the end -------------------------------------------------------------------------------

    def flush(self) -> None:
        """Sync everything written, waiting for the disk; the recovery point moves. Raises StorageFailed."""
        try:
            job = FlushJob(self, self.end_offset)
        except OSError as error:
            append.fail(self, error, "flush")
        try:
            job.run()
        except OSError as error:
            self.directory.fail(error)
            append.fail(self, error, "flush")
        job.finish()

    def close_clean(self) -> None:
        """Bring the files to the state a clean shutdown promises, and close them. Raises StorageFailed."""
        self.write_pending()
        try:
            if self.end_offset != self.clean_end:
                self.active.add_final_time_entry()
                if self.end_offset > self.local.recovery_point:
                    FlushJob(self, self.end_offset + 1).run()
                else:  # synced before, or empty: but Kafka recovers a segment that has no index file
                    self.active.write_indexes()
                producers = self.producers
                producers.map_end_offset = self.end_offset
                producers.take_snapshot(sync=True)
                self.local.mark_flushed(self.end_offset, self.active.base_offset)
        except OSError as error:
            self.directory.fail(error)
            append.fail(self, error, "close")
        self.close()

    def close(self) -> None:
        """Give up descriptors and memory, writing nothing."""
        self.closed = True
        self.tail.reset(self.end_offset, self.position)
        self.local.close_files()

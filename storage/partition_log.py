"""`PartitionLog`: the log of one partition, the door that the upper layers use.

Offsets: `start_offset` is the first one readable, `end_offset` (exclusive) the end of what is written,
`next_offset` what the next batch gets, staged ones included; start <= high watermark <= end <= next.
Appends are staged and written once a turn (`append.py`); readers see a batch only after its write returned.
Nothing here awaits and, but for what says so, nothing waits for the disk. A log is opened without reading its
indexes, producers or epochs; the first append or read that needs them does. What a log does seldom is in
modules of its own: `roll.py`, `cutting.py`, `retention.py`, `transactions.py`, `time_lookup.py`.
"""

from __future__ import annotations

from dataclasses import replace
from struct import Struct
from typing import TYPE_CHECKING, NoReturn

from protocol.records.rules import BatchRules, Checked
from runtime.files import Buffer, FileHandle
from storage import append, cutting, names, read, recovery, retention, time_lookup, transactions
from storage import roll as rolling
from storage.append import Appended
from storage.errors import StorageFailed
from storage.flush_job import FlushJob
from storage.leader_epochs import LeaderEpochs
from storage.local_log import LocalLog
from storage.log_config import LogConfig
from storage.partition_metadata import write_topic_id
from storage.producers.state import ProducerState
from storage.producers.transactions import NONE_OPEN
from storage.producers.verification import VerificationGuard
from storage.read import LogSlice
from storage.segment import Segment
from storage.tail import BATCH_BYTES_MAX, Tail, TailBudget
from storage.time_lookup import TimedOffset
from storage.txn_index import AbortedTxn

if TYPE_CHECKING:
    from storage.log_dirs import LogDir

_HEAD = Struct(">qii")  # base offset, length, leader epoch: the part of the header outside the CRC
_TXN_BITS = 0x30  # attributes: transactional, control
_appended = tuple.__new__  # half the price of the named tuple's own constructor


class PartitionLog:
    """See the module. Made by the log manager."""

    __slots__ = (
        "_producers",
        "_rules",
        "active",
        "clean_end",
        "closed",
        "config",
        "cuts",
        "directory",
        "end_offset",
        "epoch",
        "failures",
        "first_unstable",
        "handle",
        "high_watermark",
        "hold_from",
        "last_offset_max",
        "leader_epochs",
        "local",
        "name",
        "next_offset",
        "partition",
        "position",
        "prepared",
        "roll_due",
        "roll_timestamp",
        "roll_wall_ms",
        "size_limit",
        "staged",
        "start_offset",
        "sync_later",
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
        self._rules: BatchRules | None = None
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.name = f"{topic}-{partition}"
        self.start_offset = self.end_offset = self.next_offset = self.high_watermark = 0
        self.leader_epochs = LeaderEpochs(local.files, f"{local.directory}/{names.LEADER_EPOCHS}")
        self._producers: ProducerState | None = None
        self.first_unstable = transactions.NOT_KNOWN  # first offset that is not decided, NONE_OPEN if all are
        self.tail = Tail(budget, 0, 0)
        self.active: Segment
        self.handle: FileHandle
        self.position = 0  # file position of the next batch, staged ones included
        self.staged: list[tuple[Buffer, int, int, int]] = []  # part, size, last offset, maxTimestamp
        self.cuts = 0  # how often the log was loaded or cut; a flush begun before says nothing after
        self.failures = 0  # failed writes so far; tells a turn's callers whether theirs was one
        self.closed = False
        self.sync_later = False  # flush.messages is somebody else's to fulfil, who looks at `hold_from`
        self.hold_from = append.NOT_HELD  # from here on, what is written may be seen only when it is synced
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
        self.first_unstable = transactions.NOT_KNOWN
        self.hold_from = append.NOT_HELD
        self.cuts += 1
        self._forget_plan()

    @property
    def last_stable_offset(self) -> int:
        """What a read_committed consumer may read up to (exclusive)."""
        first = self.first_unstable
        if first < self.high_watermark:
            if first < 0:
                first = transactions.look_up(self)
            return min(max(first, self.start_offset), self.high_watermark)
        return self.high_watermark

    @property
    def first_unstable_offset(self) -> int | None:
        """The first readable offset of a transaction that is not decided; None where all are."""
        first = self.first_unstable
        if first < 0:
            first = transactions.look_up(self)
        return None if first == NONE_OPEN else max(first, self.start_offset)

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

    def snapshot_path(self, offset: int) -> str:
        """Where the producers' state as of that end offset is kept."""
        return f"{self.local.directory}/{names.segment_file(offset, names.SNAPSHOT)}"

    @property
    def producers(self) -> ProducerState:
        if self._producers is None:
            self.load_producers()
            assert self._producers is not None
        return self._producers

    def load_producers(self) -> None:
        """Have the producers' state in memory: from a snapshot, and what the log holds above that."""
        if self._producers is None:
            settings = self.directory.producer_settings
            self.adopt_producers(recovery.load_producers(self.local, self.end_offset, settings))

    def adopt_producers(self, producers: ProducerState | None) -> None:
        """Replace the state: by one that recovery built, or by None to have it loaded when needed."""
        self._producers = producers
        self.first_unstable = transactions.NOT_KNOWN
        if producers is not None:
            producers.settle()
            producers.transactions.replicated(self.high_watermark)

    def set_high_watermark(self, offset: int) -> int:
        """Move the high watermark, kept within the log; its new value."""
        mark = self.high_watermark = min(max(offset, self.start_offset), self.end_offset)
        if self._producers is not None and self._producers.transactions.unreplicated:
            transactions.replicated(self)
        return mark

    def update_config(self, config: LogConfig) -> None:
        """Use new settings from the next append on."""
        self.config = self.local.config = config
        self._rules = None
        self._forget_plan()

    def rules(self) -> BatchRules:
        """What a produced batch has to satisfy; refusals name the partition. Built once for each config."""
        if self._rules is None:
            self._rules = replace(self.config.rules(), topic_partition=self.name)
        return self._rules

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

    def renamed(self) -> None:
        """The directory has another name, and the files were closed: what they are for is opened anew."""
        directory = self.local.directory
        self.leader_epochs.moved(f"{directory}/{names.LEADER_EPOCHS}")
        if self._producers is not None:
            self._producers.moved(directory)
        self.cuts += 1  # a flush begun before has nothing to say
        self._forget_plan()

    def check_online(self) -> None:
        """Raise StorageFailed where the directory is out of service or the log closed."""
        if self.directory.offline or self.closed:
            offline = self.directory.offline
            why = f"is on {self.directory.path}, which is offline" if offline else "is closed"
            raise StorageFailed(f"the log of {self.name} {why}", offline=True)

    def failed(self, error: OSError, doing: str) -> NoReturn:
        """Turn a system error into StorageFailed; anything but a full disk takes the directory offline."""
        append.fail(self, error, doing)

    # --- appends --------------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        batch: Checked,
        leader_epoch: int,
        now_ms: int,
        check_order: bool = True,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Stage one checked batch; `write_pending` writes it.

        The offset and `leader_epoch` are put into the batch's header in place. A batch of at most 16 KiB is
        copied now, or kept if it is a bytearray that holds nothing else; a larger one must stay untouched
        until `write_pending`. `check_order` False: a coordinator's batch, whose sequences mean nothing.
        `guard`: see `start_verification`. `transaction_version`: of a marker, as its coordinator says. Raises
        AppendRefused (18, 45, 47, 48, 52) or StorageFailed (56).
        """
        if self.directory.offline or self.closed:
            self.check_online()
        if leader_epoch != self.epoch:
            self.assign_epoch(leader_epoch)
        buf, at, size, _, delta, attributes, timestamp, producer_id, epoch, sequence, append_time = batch
        position = self.position
        base = self.next_offset
        last = base + delta
        if (
            position + size > self.size_limit
            or timestamp > self.roll_timestamp
            or last > self.last_offset_max
            or now_ms > self.roll_wall_ms
        ):
            self.make_room(size, timestamp, last, now_ms)
            position = self.position
        if producer_id >= 0:
            if attributes & _TXN_BITS:
                known = transactions.stage(self, batch, last, check_order, guard, transaction_version)
            else:
                known = self.producers.stage(
                    producer_id, epoch, sequence, last, delta, timestamp, check_order
                )
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
        records and sequences are not. All is written when this returns, and the buffer is free. Raises
        AppendRefused, UnexpectedAppendOffset, StorageFailed.
        """
        return append.append_fetched(self, memoryview(records), now_ms)

    # --- rolling --------------------------------------------------------------------------------------------

    def _forget_plan(self) -> None:
        """The next append looks anew at when the active segment has to be closed."""
        self.prepared = self.roll_due = False
        self.size_limit = self.roll_timestamp = self.last_offset_max = self.roll_wall_ms = -1

    def start_segment(self, timestamp: int, now_ms: int) -> None:
        """The first batch of the active segment is being staged: its timestamp counts the segment's age."""
        self.active.first_timestamp = timestamp
        self.active.created_ms = now_ms
        rolling.plan(self)

    def make_room(self, size: int, timestamp: int, last: int, now_ms: int) -> None:
        """Roll if this append must not go into the active segment. Raises AppendRefused, StorageFailed."""
        rolling.make_room(self, size, timestamp, last, now_ms)

    def roll(self, now_ms: int) -> None:
        """Close the active segment and begin one at the next offset; what is staged is written before.

        The old files are synced in the background, after which the recovery point moves. Raises
        StorageFailed.
        """
        rolling.roll(self, now_ms)

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

    # --- transactions ---------------------------------------------------------------------------------------

    def aborted(self, start_offset: int, upper_offset: int) -> list[AbortedTxn]:
        """Aborted transactions with records in [start_offset, upper_offset), for read_committed consumers.

        There may be some more. Raises StorageFailed.
        """
        try:
            return transactions.aborted(self, start_offset, upper_offset)
        except OSError as error:
            append.fail(self, error, "read")

    def aborted_within(self, offset: int, piece: LogSlice) -> list[AbortedTxn]:
        """The same for what `read` returned for `offset`."""
        try:
            return transactions.aborted_within(self, offset, piece)
        except OSError as error:
            append.fail(self, error, "read")

    def start_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard | None:
        """Begin to ask whether a transaction may write here (KIP-890); see transactions.py."""
        return transactions.start_verification(
            self, producer_id, sequence, epoch, supports_epoch_bump, now_ms
        )

    # --- cutting --------------------------------------------------------------------------------------------

    def delete_records(self, offset: int) -> int:
        """Make `offset` (-1: the high watermark) the first one readable; the new start offset.

        The caller has the manager persist it before answering. Raises StorageError (44), StorageFailed (56),
        OffsetOutOfRange (1).
        """
        return cutting.delete_records(self, offset)

    def move_start(self, offset: int) -> None:
        """Raise the start offset; files go when `delete_old_segments` runs. Raises StorageFailed."""
        cutting.move_start(self, offset)

    def delete_old_segments(self, now_ms: int) -> int:
        """Set aside the segments that retention lets go (retention.py); how many. Raises StorageFailed."""
        return retention.delete_old_segments(self, now_ms)

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Make `offset` the end of the log, dropping whole batches that reach it; whether anything went."""
        return cutting.truncate_to(self, offset, now_ms)

    def truncate_fully(self, offset: int, now_ms: int, start_offset: int | None = None) -> None:
        """Drop everything and begin at `offset`; `start_offset` may lie below it (a copy of a tiered log)."""
        cutting.truncate_fully(self, offset, now_ms, start_offset)

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

    def prepare_close(self) -> FlushJob | None:
        """Bring the files to the state a clean shutdown promises; then nothing may be appended any more.

        Before `close` the job, if there is one, is to be run, and `closed_clean` to be called. Raises
        StorageFailed.
        """
        self.write_pending()
        if self.end_offset == self.clean_end:
            return None
        try:
            self.active.trim()
            self.active.add_final_time_entry()
            producers = self.producers
            producers.map_end_offset = self.end_offset
            empty = self.end_offset == self.local.segments.first.base_offset
            producers.take_snapshot(sync=empty)
            if not empty:
                # Even if all records are synced: the final time entries of what was sealed are not.
                return FlushJob(self, self.end_offset + 1)
            self.active.write_indexes()  # empty: but Kafka recovers a segment that has no index file
            self.closed_clean()
        except OSError as error:
            self.directory.fail(error)
            append.fail(self, error, "close")
        return None

    def closed_clean(self) -> None:
        """What `prepare_close` left to sync is on the disk."""
        self.local.mark_flushed(self.end_offset, self.local.names_made)

    def close(self) -> None:
        """Give up descriptors and memory, writing nothing."""
        self.closed = True
        self.tail.reset(self.end_offset, self.position)
        self.local.close_files()

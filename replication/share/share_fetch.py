"""One share fetch: read the partitions from which something can be acquired, wait where there is too little,
and give the member what it gets.

A fetch waits for `min_bytes`, as an ordinary one does, or until its time is over; then it takes what there
is. It waits without a task: an entry in the waiters of its share partitions (something became free, loaded,
failed) and of their logs (something was appended), and in a bucket of deadlines. Reading and acquiring are
one stretch without an await, so no two fetches meet over the same records.

The answer's bytes are shared among the partitions that can be read, and its records go to the first ones; a
session therefore begins with another partition each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from protocol.errors import ErrorCode
from replication.share.acquire import AcquiredRange, Wish
from replication.share.log_batches import cut_to, log_batches
from replication.share.share_partition import Phase
from replication.share.share_partitions import Entry, Place, SharePartitions
from storage.errors import CorruptLog, OffsetOutOfRange, StorageError
from storage.read import LogSlice, SliceData


@dataclass(slots=True)
class ShareWish:
    """What a member asks for. `max_bytes` is already the least of what the request and the broker allow."""

    group_id: str
    member: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: int
    read_committed: bool = False


class ShareRow:
    """What one partition answers: whole batches of `length` bytes, of which only `ranges` belong to the
    member.
    """

    __slots__ = ("data", "error", "length", "message", "place", "ranges")

    def __init__(self, place: Place, error: ErrorCode = ErrorCode.NONE, message: str | None = None) -> None:
        self.place = place
        self.error = error
        self.message = message
        self.ranges: Sequence[AcquiredRange] = ()
        self.data: SliceData = b""
        self.length = 0


class Deadlines(Protocol):
    """replication's deadline buckets."""

    def add(self, waiter: Any, wait_ms: int) -> dict[Any, None]: ...


class _Found:
    """What a read of one partition gave."""

    __slots__ = ("entry", "error", "offset", "slice", "upto")

    def __init__(self, entry: Entry, offset: int) -> None:
        self.entry = entry
        self.offset = offset
        self.error = ErrorCode.NONE
        self.slice: LogSlice | None = None
        self.upto = offset


class ShareFetch:
    """See the module. `done` hears the rows, once; not after `cancel`."""

    __slots__ = ("_bucket", "_deadlines", "_done", "_entries", "_failed", "_over", "_partitions", "_wish")

    def __init__(
        self,
        partitions: SharePartitions,
        wish: ShareWish,
        deadlines: Deadlines,
        done: Callable[[list[ShareRow]], None],
    ) -> None:
        self._partitions, self._wish = partitions, wish
        self._deadlines, self._done = deadlines, done
        self._entries: dict[Place, Entry] = {}
        self._failed: dict[Place, ShareRow] = {}
        self._bucket: dict[Any, None] | None = None
        self._over = False

    def start(self, places: Sequence[Place]) -> None:
        """Begin; `done` may be called at once."""
        wish = self._wish
        if not places or wish.max_records == 0 or wish.max_bytes <= 0:
            self._finish([])
            return
        for place in places:
            self._look_up(place)
        self._try(late=wish.max_wait_ms <= 0)

    def wake(self) -> None:
        """Something changed."""
        self._leave()
        self._try(late=False)

    def expire(self) -> None:
        """The waiting time is over."""
        self._bucket = None
        self._leave()
        self._try(late=True)

    def cancel(self) -> None:
        """Nobody wants the answer any more."""
        self._over = True
        self._leave()
        if self._bucket is not None:
            self._bucket.pop(self, None)
            self._bucket = None

    # Waiting

    def _look_up(self, place: Place) -> None:
        found = self._partitions.get_or_load(self._wish.group_id, place)
        if isinstance(found, Entry):
            self._entries[place] = found
        else:
            self._failed[place] = ShareRow(place, found, found.message)

    def _try(self, late: bool) -> None:
        if self._over:
            return
        self._drop_fenced()
        found, enough = self._read()
        if late or enough or not self._entries:
            self._finish(self._acquire(found))
        else:
            self._park()

    def _drop_fenced(self) -> None:
        """Share partitions that did not load, or are served elsewhere now, answer with that."""
        for place, entry in list(self._entries.items()):
            if entry.share.phase is Phase.FENCED:
                del self._entries[place]
                if entry.failed is not ErrorCode.NONE:
                    self._failed[place] = ShareRow(place, entry.failed, entry.failed.message)
                else:
                    self._look_up(place)

    def _park(self) -> None:
        for entry in self._entries.values():
            entry.waiters[self] = None
            entry.partition.waiters[self] = None
        if self._bucket is None:
            self._bucket = self._deadlines.add(self, self._wish.max_wait_ms)

    def _leave(self) -> None:
        for entry in self._entries.values():
            entry.waiters.pop(self, None)
            entry.partition.waiters.pop(self, None)

    def _finish(self, rows: list[ShareRow]) -> None:
        self._over = True
        if self._bucket is not None:
            self._bucket.pop(self, None)
            self._bucket = None
        self._done([*rows, *self._failed.values()])

    # Reading

    def _read(self) -> tuple[list[_Found], bool]:
        """A read of each partition from which something can be acquired, and whether that is enough."""
        ready = [entry for entry in self._entries.values() if entry.share.can_acquire()]
        if not ready:
            return [], False
        wish = self._wish
        left = wish.max_bytes
        share, rest = divmod(left, len(ready))
        available, enough, taken = 0, False, False
        reads = []
        for number, entry in enumerate(ready):
            most = share + (rest if number == 0 else 0) if share else int(number < wish.max_bytes)
            found = _Found(entry, entry.share.next_offset())
            reads.append(found)
            self._read_one(found, min(most, left), not taken)
            if found.error is not ErrorCode.NONE:
                enough = True
                continue
            if found.slice is None or not found.slice.length:
                continue
            taken = True
            left = max(left - found.slice.length, 0)
            log = entry.partition.log
            if found.slice.segment_base != log.active.base_offset:
                enough = True  # as for an ordinary fetch
            elif found.upto == log.end_offset:
                available += min(log.active.size - found.slice.position, max(most, 1))
            else:
                available += found.slice.length
        return reads, enough or available >= wish.min_bytes

    def _read_one(self, found: _Found, max_bytes: int, min_one: bool) -> None:
        partition = found.entry.partition
        found.error = partition.check(-1)
        if found.error is not ErrorCode.NONE:
            return
        found.upto = partition.read_limit(int(self._wish.read_committed))
        try:
            found.slice = partition.log.read(found.offset, max_bytes, found.upto, min_one)
        except OffsetOutOfRange:
            found.error = ErrorCode.OFFSET_OUT_OF_RANGE
        except StorageError as failed:
            found.error = failed.error

    # Acquiring

    def _acquire(self, reads: list[_Found]) -> list[ShareRow]:
        left = self._wish.max_records
        rows = []
        for found in reads:
            row = ShareRow((found.entry.topic_id, found.entry.index))
            rows.append(row)
            if found.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                found.entry.share.move_start(found.entry.partition.log.start_offset)
            elif found.error is not ErrorCode.NONE:
                row.error, row.message = found.error, found.error.message
            elif found.slice is not None and left > 0:
                left -= self._acquire_from(found, found.slice, left, row)
        return rows

    def _acquire_from(self, found: _Found, read: LogSlice, most: int, row: ShareRow) -> int:
        """Acquire from one read; about how many records."""
        wish, entry = self._wish, found.entry
        share = entry.share
        try:
            batches = log_batches(read, found.offset, share.read_upto(found.offset, most))
        except (CorruptLog, OSError):
            row.error, row.message = ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE.message
            return 0
        asked = Wish(wish.member, found.offset, most, wish.batch_size, wish.mode)
        acquired = share.acquire(asked, batches, self._partitions.now_ms())
        if acquired.ranges:
            row.ranges = acquired.ranges
            first, last = acquired.ranges[0].first, acquired.ranges[-1].last
            row.data, row.length = cut_to(read.data, batches, first, last)
            self._partitions.arm(entry)
        return acquired.count

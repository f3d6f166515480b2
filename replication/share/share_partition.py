"""One partition as one share group sees it: which records are out with whom, and which are done.

The public door of the state machine. Every method takes the time it needs (monotonic, in ms) and returns what
its owner has to do: state to be stored, ranges to be told. Changes that members ask for come back as a
`Transition`; the owner stores `state_batches` of it and then says `commit` or `roll_back`. Locks that run out
are not asked for, so they are never rolled back: their changes are stored afterwards, or not.

States: LOADING until its stored state is there, ACTIVE, and FENCED for good once another leader may serve it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from replication.share.acknowledge import Ack, Acknowledgement, AckRefused, AckType
from replication.share.acquire import Acquired, Acquisition, Wish
from replication.share.log_batches import LogBatch
from replication.share.ports import Limits, ShareState, StateBatch
from replication.share.runs import ACQUIRED, ARCHIVED, AVAILABLE, Transition, joined
from replication.share.window import Window

NO_STATE_EPOCH = 0


class Phase(Enum):
    """Where a share partition stands."""

    LOADING = "loading"
    ACTIVE = "active"
    FENCED = "fenced"


class SharePartition:
    """See the module. `limits` is asked each time, because the settings of a group may change."""

    __slots__ = ("_earliest_ms", "_limits", "phase", "state_epoch", "window")

    def __init__(self, limits: Callable[[], Limits]) -> None:
        self._limits = limits
        self.phase = Phase.LOADING
        self.state_epoch = NO_STATE_EPOCH
        self.window = Window(0)
        self._earliest_ms: int | None = None  # no lock runs out before

    def load(self, state: ShareState, start_offset: int) -> None:
        """Begin to serve. `start_offset` is the stored one, or the one that the group's settings give.

        ValueError where the stored state cannot be right; then it still loads.
        """
        self.window = Window(start_offset, state.batches)
        self.state_epoch = state.state_epoch
        self.phase = Phase.ACTIVE

    def fence(self) -> None:
        """Nothing may be acquired here any more."""
        self.phase = Phase.FENCED

    # Reading

    def can_acquire(self) -> bool:
        """Whether a read makes sense: something in the window is free, or there is room behind it."""
        if self.phase is not Phase.ACTIVE:
            return False
        window = self.window
        if window.next_offset() != window.end_offset + 1:
            return True
        return window.in_flight < self._limits().max_record_locks

    def next_offset(self) -> int:
        """Where to read next."""
        return self.window.next_offset()

    def read_upto(self, fetch_offset: int, max_records: int) -> int:
        """No batch of the log that begins beyond this offset can be of use."""
        return max(self.window.end_offset, fetch_offset) + max(max_records, 0)

    def acquire(
        self, wish: Wish, log: Sequence[LogBatch], now_ms: int, aborted: Iterable[tuple[int, int]] = ()
    ) -> Acquired:
        """Give a member what it wishes of the batches that were read.

        `aborted`, for read_committed: (producer id, first offset) of aborted transactions among them; their
        data is archived instead.
        """
        if self.phase is not Phase.ACTIVE or wish.max_records <= 0:
            return Acquired()
        limits = self._limits()
        deadline_ms = now_ms + limits.lock_duration_ms
        acquired = Acquisition(self.window, wish, log, limits, deadline_ms).run()
        gone = _aborted_batches(log, aborted)
        if gone and acquired.ranges:
            acquired = self._without(acquired, gone)
        if acquired.ranges:
            self._note_deadline(deadline_ms)
        return acquired

    def _without(self, acquired: Acquired, gone: Sequence[LogBatch]) -> Acquired:
        left = Acquired()
        for first, last, count in acquired.ranges:
            for batch in gone:
                if batch.last < first or batch.first > last:
                    continue
                low, high = max(first, batch.first), min(last, batch.last)
                floor = self.window.floor(low)
                begin = floor.first if floor is not None else low
                self.window.archive(self.window.beginning_in(begin, high), low, high, ACQUIRED)
                if low > first:
                    left.add(first, low - 1, count)
                first = high + 1
            if first <= last:
                left.add(first, last, count)
        return left

    # What members say

    def acknowledge(self, member: str, acks: Sequence[Ack], now_ms: int, may_renew: bool) -> Transition:
        """Stage what a member says. AckRefused: nothing has changed but locks that were renewed."""
        limits = self._limits()
        until_ms = now_ms + limits.lock_duration_ms
        work = Acknowledgement(self.window, member, limits.delivery_count_limit, until_ms, may_renew)
        try:
            for ack in acks:
                work.apply(ack)
        except AckRefused:
            self.roll_back(work.transition, now_ms)
            raise
        finally:
            if any(AckType.RENEW in ack.types for ack in acks):
                self._note_deadline(until_ms)
        return work.transition

    def release(self, member: str) -> Transition:
        """Stage that all that a member holds is free again: its session is over. Deliveries count."""
        window = self.window
        limit = self._limits().delivery_count_limit
        work = Acknowledgement(window, member, limit, 0, False)
        for batch in window.held(member):
            batch.cut_at([window.start_offset])
            for run in batch.runs:
                if run.state == ACQUIRED and run.member == member:
                    work.stage(run, ARCHIVED if run.last < window.start_offset else AVAILABLE)
        return work.transition

    def state_batches(self, transition: Transition) -> list[StateBatch]:
        """What is to be stored of a transition."""
        return transition.state_batches(self.window.start_offset)

    def commit(self, transition: Transition) -> bool:
        """It is stored. True if the window moved: who waits for room looks again."""
        return self.window.commit(transition)

    def roll_back(self, transition: Transition, now_ms: int) -> None:
        """It is not stored: as if it had not been asked, but locks have run on."""
        self.window.roll_back(transition, now_ms, self._limits().delivery_count_limit)
        for run in transition.runs:
            if run.state == ACQUIRED:
                self._note_deadline(run.deadline_ms)

    # Time

    def next_deadline_ms(self) -> int | None:
        """When `expire` is to be called: no lock runs out before."""
        return self._earliest_ms

    def expire(self, now_ms: int) -> list[StateBatch]:
        """Take back what was locked for too long; what is to be stored of it. `advance` follows."""
        if self._earliest_ms is None or now_ms < self._earliest_ms:
            return []
        window = self.window
        limit = self._limits().delivery_count_limit
        taken: list[StateBatch] = []
        earliest: int | None = None
        for batch in window.batches:
            batch.cut_at([window.start_offset])
            for run in batch.runs:
                if run.state == ACQUIRED and run.deadline_ms <= now_ms:
                    gone = run.last < window.start_offset or run.count >= limit
                    window.free(run, ARCHIVED if gone else AVAILABLE)
                    taken.append(run.kept)
                elif run.state == ACQUIRED and (earliest is None or run.deadline_ms < earliest):
                    earliest = run.deadline_ms
        self._earliest_ms = earliest
        return joined(taken, window.start_offset)

    def advance(self) -> bool:
        """Move past what is done; True if there was any."""
        return self.window.advance()

    def move_start(self, log_start_offset: int) -> bool:
        """The log begins at this offset now; True if that is news."""
        return self.window.move_start(log_start_offset)

    def _note_deadline(self, deadline_ms: int) -> None:
        if self._earliest_ms is None or deadline_ms < self._earliest_ms:
            self._earliest_ms = deadline_ms


def _aborted_batches(log: Sequence[LogBatch], aborted: Iterable[tuple[int, int]]) -> list[LogBatch]:
    """The batches that belong to aborted transactions, as a read_committed consumer finds them."""
    begun = sorted((first, producer_id) for producer_id, first in aborted)
    if not begun:
        return []
    at = 0
    open_ids: dict[int, None] = {}
    found = []
    for batch in log:
        if batch.producer_id < 0:
            continue
        while at < len(begun) and begun[at][0] <= batch.last:
            open_ids[begun[at][1]] = None
            at += 1
        if batch.abort_marker:
            open_ids.pop(batch.producer_id, None)
        elif batch.transactional and batch.producer_id in open_ids:
            found.append(batch)
    return found

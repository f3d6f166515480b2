"""The records of one share partition that are in flight, from its start offset to its end offset.

`start_offset` (SPSO): everything below is done with. `end_offset` (SPEO): the last offset that was ever
acquired, inclusive; where no batches are left, the next one to be read, as the start. Batches ascend and do
not overlap. Between them lie offsets at which the log has no records (compaction), or which nobody knows
about yet: after a load, state is kept for some records only, and `gap` says from where on the others are to
be read. It ends with the first acquisition beyond what was loaded.

`complete_count` is the number of records from the start on that are in a final state.

Nothing here knows of time, limits or members' wishes; acquire.py and acknowledge.py do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from replication.share.ports import StateBatch
from replication.share.runs import (
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    FINAL,
    NO_DEADLINE,
    NOBODY,
    FlightBatch,
    Run,
    Transition,
)


class Gap:
    """Unknown offsets from `start` on; of meaning while the window ends at `end`."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class Window:
    """See the module. `may_have_free`: a run may have become available again since it was last looked for."""

    __slots__ = ("_firsts", "batches", "complete_count", "end_offset", "gap", "may_have_free", "start_offset")

    def __init__(self, start_offset: int, kept: Iterable[StateBatch] = ()) -> None:
        """A window as it was stored. ValueError where the batches cannot be right."""
        self.start_offset = self.end_offset = start_offset
        self.batches: list[FlightBatch] = []
        self._firsts: list[int] = []
        self.complete_count = 0
        self.may_have_free = False
        self.gap: Gap | None = None
        expected, gap_start = start_offset, -1
        for each in kept:
            state = ARCHIVED if each.delivery_state == ARCHIVING else each.delivery_state
            if each.first_offset < expected or each.last_offset < each.first_offset:
                raise ValueError(f"{each} does not follow {expected - 1}")
            if state != AVAILABLE and state not in FINAL:
                raise ValueError(f"{each} is in no state that is kept")
            if gap_start < 0 and each.first_offset > expected:
                gap_start = expected
            expected = each.last_offset + 1
            self.insert(FlightBatch([Run(each.first_offset, each.last_offset, state, each.delivery_count)]))
            if state in FINAL:
                self.complete_count += each.last_offset - each.first_offset + 1
        if self.batches:
            self.may_have_free = True
            self.end_offset = expected - 1
            if gap_start >= 0:
                self.gap = Gap(gap_start, self.end_offset)
            self.advance()

    # Finding

    @property
    def in_flight(self) -> int:
        """Records between start and end, whatever their state."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def gap_is_open(self) -> bool:
        return self.gap is not None and self.gap.end == self.end_offset

    def floor(self, offset: int) -> FlightBatch | None:
        """The last batch that begins at or before `offset`; it may end before it."""
        at = bisect_right(self._firsts, offset) - 1
        return self.batches[at] if at >= 0 else None

    def beginning_in(self, first: int, last: int) -> list[FlightBatch]:
        """Batches whose first offset is in the range."""
        return self.batches[bisect_right(self._firsts, first - 1) : bisect_right(self._firsts, last)]

    def insert(self, batch: FlightBatch) -> None:
        """Add a batch where there is none."""
        if not self._firsts or batch.first > self._firsts[-1]:
            self._firsts.append(batch.first)
            self.batches.append(batch)
            return
        at = bisect_right(self._firsts, batch.first)
        self._firsts.insert(at, batch.first)
        self.batches.insert(at, batch)

    def next_offset(self) -> int:
        """The next offset to read at: the first free record, else the first one after the window."""
        if not self.batches or self.start_offset > self.batches[-1].last:
            self.may_have_free = False
            return self.end_offset
        if self.may_have_free:
            gap = self.gap.start if self.gap is not None and self.gap_is_open else None
            for batch in self.batches:
                if gap is not None:
                    if batch.first > gap:
                        return gap
                    gap = max(gap, batch.last + 1)
                for run in batch.runs:
                    if run.state == AVAILABLE and run.staged is None:
                        return run.first
            self.may_have_free = False
        return self.end_offset + 1

    # Changing

    def change(self, run: Run, state: int) -> None:
        """Give a run another state. Counts it where it is final; nothing else."""
        if (run.state in FINAL) != (state in FINAL):
            records = max(run.last - max(run.first, self.start_offset) + 1, 0)
            self.complete_count += records if state in FINAL else -records
        run.state = state
        if state == AVAILABLE:
            self.may_have_free = True

    def free(self, run: Run, state: int) -> None:
        """Take a run from its member for good: available again, or final."""
        self.change(run, state)
        run.member, run.deadline_ms = NOBODY, NO_DEADLINE

    def stage(self, run: Run, state: int, transition: Transition) -> None:
        """Show a new state of an acquired run, as part of a transition."""
        run.before = (run.state, run.member)
        run.staged = transition
        transition.runs.append(run)
        self.change(run, state)
        run.member = NOBODY

    def commit(self, transition: Transition) -> bool:
        """The changes are kept. True if the start moved or batches went."""
        for run in transition.runs:
            if run.staged is transition:
                run.staged = None
                run.deadline_ms = NO_DEADLINE
                if run.state == AVAILABLE:
                    self.may_have_free = True
        return self.advance()

    def roll_back(self, transition: Transition, now_ms: int, delivery_count_limit: int) -> None:
        """The changes are not kept: runs are acquired as before, or free if their lock ran out meanwhile."""
        for run in list(transition.runs):
            if run.first < self.start_offset <= run.last:
                batch = self.floor(run.first)
                if batch is not None:
                    list(batch.within(self.start_offset, run.last))
        for run in transition.runs:
            if run.staged is not transition:
                continue  # archived since
            run.staged = None
            if run.deadline_ms <= now_ms:
                gone = run.last < self.start_offset or run.count >= delivery_count_limit
                self.free(run, ARCHIVED if gone else AVAILABLE)
            else:
                state, run.member = run.before
                self.change(run, state)

    def archive(self, batches: Iterable[FlightBatch], first: int, last: int, state: int = AVAILABLE) -> bool:
        """Archive the runs of one state within the range, also staged ones; whether there were any."""
        found = False
        for batch in batches:
            if not any(run.state == state for run in batch.touching(first, last)):
                continue
            for run in batch.within(first, last):
                if run.state == state:
                    run.staged = None
                    self.free(run, ARCHIVED)
                    found = True
        return found

    def move_start(self, log_start_offset: int) -> bool:
        """The log begins later. What is free below goes; what is acquired stays until it comes back."""
        new, old = log_start_offset, self.start_offset
        if new <= old:
            return False
        if not self.batches:
            self.start_offset = self.end_offset = new
            self.complete_count = 0
            return True
        below = [batch for batch in self.batches if batch.first < new]
        if self.archive(below, old, new - 1):
            self.may_have_free = True
        for batch in below:
            for run in batch.touching(old, new - 1):
                if run.state in FINAL:
                    self.complete_count -= min(run.last, new - 1) - max(run.first, old) + 1
        self.start_offset = new
        self.end_offset = max(self.end_offset, new)
        return True

    def moved_gap(self, offset: int) -> None:
        """Everything below `offset` was looked at."""
        if self.gap is not None:
            if self.gap_is_open and offset <= self.gap.end:
                self.gap.start = offset
            else:
                self.gap = None

    def advance(self) -> bool:
        """Move the start past final records and drop batches that lie below it; whether anything changed."""
        done, passed, whole = self._done_from_front()
        if done < 0:
            return False
        if whole == len(self.batches):
            last = self.batches[-1].last
            self.start_offset = self.end_offset = max(self.start_offset, last + 1)
            self.batches.clear()
            self._firsts.clear()
            self.complete_count = 0
            return True
        if whole and done == self.batches[whole - 1].last:
            start = max(self.start_offset, self.batches[whole].first)
            if self.gap is not None and self.gap_is_open:
                start = min(start, max(self.gap.start, self.start_offset))
        else:
            start = max(self.start_offset, done + 1)
        moved = start > self.start_offset
        self.start_offset = start
        self.complete_count -= passed
        if whole:
            del self.batches[:whole], self._firsts[:whole]
        return moved or whole > 0

    def _done_from_front(self) -> tuple[int, int, int]:
        """Up to where all records are final (-1: nowhere), how many of them count as in flight, and how many
        batches they fill.
        """
        done, passed, whole = -1, 0, 0
        gap = self.gap.start if self.gap is not None and self.gap_is_open else None
        for batch in self.batches:
            if gap is not None and batch.last >= gap:
                break
            for run in batch.runs:
                if run.staged is not None or run.state not in FINAL:
                    return done, passed, whole
                done = run.last
                passed += max(run.last - max(run.first, self.start_offset) + 1, 0)
            whole += 1
        return done, passed, whole

    def held(self, member: str) -> list[FlightBatch]:
        """Batches of which the member has acquired something."""
        return [
            batch
            for batch in self.batches
            if any(run.state == ACQUIRED and run.member == member for run in batch.runs)
        ]

"""Records in flight, kept as runs: neighbouring offsets that share one state.

A record is AVAILABLE, ACQUIRED by a member until its lock runs out, or in a final state: ACKNOWLEDGED or
ARCHIVED. The numbers are those in which Kafka stores them; 1 is never stored, 3 is for dead letters.

    available -> acquired                     delivered, count + 1
    acquired  -> available | archived         released, timed out: archived at the delivery limit
    acquired  -> acknowledged | archived      accepted; rejected, or there is no such record
    available -> archived                     the log begins behind it, or compaction took it

A change that a member asks for is staged: the run shows its new state at once, so that nobody else gets it,
and remembers the old one until the state is kept (`Transition`). What is staged cannot be acquired.

A `FlightBatch` is what was acquired in one piece, usually whole batches of the log. It begins with one run;
operations on parts of it split runs, and nothing is ever kept for each record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replication.share.ports import StateBatch

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVING, ARCHIVED = range(5)
FINAL = (ACKNOWLEDGED, ARCHIVED)
NOBODY = ""
NO_DEADLINE = 0


class Run:
    """Offsets `first` to `last`, inclusive. `member` and `deadline_ms` belong to an acquired run; a staged
    one keeps its deadline, and in `before` its state and member, until the transition ends.
    """

    __slots__ = ("before", "count", "deadline_ms", "first", "last", "member", "staged", "state")

    def __init__(
        self,
        first: int,
        last: int,
        state: int,
        count: int,
        member: str = NOBODY,
        deadline_ms: int = NO_DEADLINE,
    ) -> None:
        self.first, self.last = first, last
        self.state = state
        self.count = count
        self.member = member
        self.deadline_ms = deadline_ms
        self.staged: Transition | None = None
        self.before: tuple[int, str] = (state, member)

    def __repr__(self) -> str:
        name = ("available", "acquired", "acknowledged", "archiving", "archived")[self.state]
        held = f" by {self.member}" if self.member else ""
        return f"{self.first}-{self.last} {name}{held} x{self.count}{' staged' if self.staged else ''}"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def free(self) -> bool:
        """Whether it may be acquired."""
        return self.state == AVAILABLE and self.staged is None

    @property
    def kept(self) -> StateBatch:
        """Its state as it is stored."""
        return StateBatch(self.first, self.last, self.state, self.count)


class Transition:
    """Changes that are shown, but not kept yet. They end together: `Window.commit` or `Window.roll_back`."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def state_batches(self, start_offset: int) -> list[StateBatch]:
        """What is to be stored, ascending, without what lies below the start."""
        return joined(sorted(run.kept for run in self.runs), start_offset)


def joined(batches: list[StateBatch], start_offset: int) -> list[StateBatch]:
    """Neighbours of one state made one; what lies below `start_offset` is left out."""
    result: list[StateBatch] = []
    for each in batches:
        if each.last_offset < start_offset:
            continue
        first = max(each.first_offset, start_offset)
        before = result[-1] if result else None
        if before is not None and before.last_offset + 1 == first and before[2:] == each[2:]:
            result[-1] = before._replace(last_offset=each.last_offset)
        else:
            result.append(each._replace(first_offset=first))
    return result


class FlightBatch:
    """Offsets `first` to `last`, inclusive, covered by `runs` without gaps. `split`: states differ, or have
    differed, within it; then its records are counted and refused one by one.
    """

    __slots__ = ("first", "last", "runs", "split")

    def __init__(self, runs: list[Run]) -> None:
        self.first, self.last = runs[0].first, runs[-1].last
        self.runs = runs
        self.split = len(runs) > 1

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.runs))}]"

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def within(self, first: int, last: int) -> Iterator[Run]:
        """Runs cut to the range, split where they reach out of it."""
        at = 0
        while at < len(self.runs):
            run = self.runs[at]
            if run.first > last:
                return
            if run.last >= first:
                if run.first < first:
                    self.cut(at, first)
                    at += 1
                    run = self.runs[at]
                if run.last > last:
                    self.cut(at, last + 1)
                yield run
            at += 1

    def touching(self, first: int, last: int) -> Iterator[Run]:
        """Runs that overlap the range, as they are."""
        return (run for run in self.runs if run.first <= last and run.last >= first)

    def cut(self, at: int, offset: int) -> None:
        """Split the run at index `at` so that a new one begins at `offset`; both have all else in common."""
        self.runs.insert(at + 1, _split(self.runs[at], offset))
        self.split = True

    def cut_at(self, offsets: Sequence[int]) -> None:
        """Split runs so that one begins at each of the offsets, which ascend; in one pass."""
        runs: list[Run] = []
        at, count = 0, len(offsets)
        for run in self.runs:
            while at < count and offsets[at] <= run.first:
                at += 1
            while at < count and offsets[at] <= run.last:
                right = _split(run, offsets[at])
                runs.append(run)
                run = right
                at += 1
            runs.append(run)
        if len(runs) > len(self.runs):
            self.runs = runs
            self.split = True


def _split(run: Run, offset: int) -> Run:
    """End the run before `offset`, and return the rest of it."""
    right = Run(offset, run.last, run.state, run.count, run.member, run.deadline_ms)
    right.staged, right.before = run.staged, run.before
    if right.staged is not None:
        right.staged.runs.append(right)
    run.last = offset - 1
    return right

"""One partition of an internal topic as its coordinator holds it: its state, and the responses that are
parked until the log has decided about their records.

Invariant: parked responses stand in the order of their offsets, and are answered in that order, after the
state has been committed or rolled back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

from coordinator.journal import Journal
from coordinator.ports import Cancellable
from coordinator.result import CoordinatorRecord, Result, append_error
from coordinator.shard import Shard
from coordinator.timer import KeyedTimers
from protocol.errors import ErrorCode

NO_EPOCH = -1
NEVER_MS = 1 << 62

S = TypeVar("S", bound=Shard)
Done = Callable[[ErrorCode, Any], None]
Append = Callable[[list[CoordinatorRecord], Callable[[ErrorCode], None]], None]
Write = Callable[[Callable[[], Result[Any]], Done], None]


class State(Enum):
    """Where a partition stands."""

    INITIAL = "initial"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(slots=True)
class Context:
    """What a shard's maker is given: the shard must keep what records change in tables over this journal.

    `append` is for state machines that have changed by themselves: the records are appended without being
    applied, and the callback hears NONE or the error. It is called once, and only after `append` returned.
    `write` runs an operation on the shard as a request's: for timers that ring, and work that comes back.
    """

    partition: int
    journal: Journal
    timers: KeyedTimers
    append: Append
    write: Write


class Parked:
    """A response that waits until records before `end_offset` are committed."""

    __slots__ = ("base_offset", "deadline_ms", "decided", "done", "end_offset", "owned", "response", "undo")

    def __init__(
        self, owned: OwnedPartition[Any], response: Any, done: Done, undo: Callable[[], None] | None = None
    ) -> None:
        self.owned = owned
        self.response = response
        self.done: Done | None = done  # none once it was answered
        self.undo = undo
        self.base_offset = self.end_offset = self.deadline_ms = 0
        self.decided = False

    def settle(self, error: ErrorCode) -> None:
        """The log has decided about the records."""
        owned = self.owned
        if self.decided or owned.state is not State.ACTIVE:
            return  # an earlier failure took it along, or the partition has gone
        if error is ErrorCode.NONE:
            owned.committed(self.end_offset)
        else:
            owned.failed(self.base_offset, error)


@dataclass(slots=True, eq=False)
class OwnedPartition(Generic[S]):
    """`alarm` rings at `alarm_ms`, not after the end of the waiting time of any parked response."""

    shard: S
    context: Context
    state: State = State.INITIAL
    epoch: int = NO_EPOCH
    parked: deque[Parked] = field(default_factory=deque)
    appended_end: int = 0
    alarm: Cancellable | None = None
    alarm_ms: int = NEVER_MS

    def committed(self, end_offset: int) -> None:
        """All records before `end_offset` are."""
        self.context.journal.commit(end_offset)
        parked = self.parked
        first = parked.popleft()
        if not parked or parked[0].end_offset > end_offset:  # it is alone, as nearly always
            first.decided = True
            done, first.done = first.done, None
            if done is not None:
                done(ErrorCode.NONE, first.response)
            return
        answered = [first]
        while parked and parked[0].end_offset <= end_offset:
            answered.append(parked.popleft())
        answer(answered, ErrorCode.NONE)

    def failed(self, base_offset: int, error: ErrorCode) -> None:
        """No record from `base_offset` on is in the log."""
        self.context.journal.roll_back(base_offset)
        self.appended_end = base_offset
        failed = []
        while self.parked and self.parked[-1].end_offset > base_offset:
            failed.append(self.parked.pop())
            if (undo := failed[-1].undo) is not None:
                undo()
        failed.reverse()
        answer(failed, append_error(error))


def answer(decided: Sequence[Parked], error: ErrorCode) -> None:
    """All are marked first: an answer may lead to a write, which may get the offsets of one that failed."""
    for parked in decided:
        parked.decided = True
    for parked in decided:
        done, parked.done = parked.done, None
        if done is not None:
            done(error, parked.response if error is ErrorCode.NONE else None)

"""Answers that a connection owes for records that its partitions' other replicas do not have yet (acks=all).

While followers copy what a client has written, its next requests of the same kind are served already, so that
the leader writes and the followers fetch at the same time. Apache Kafka serves one request of a connection at
a time, and its leader waits meanwhile. Each answer is prepared when its batch is staged; it stands in the
connection's queue, and leaves when it and all before it are settled. What is not of this kind waits until the
queue is empty, so answers keep the order of requests.

A promise is settled once: the high watermark has passed its records, or leadership goes, the write fails, or
its time is over; then it becomes a refusal. It costs one object for a request. A connection looks after all
its deadlines with one entry in a bucket: those that are kept in time, nearly all, cost nothing.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Protocol, TypeAlias

from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from replication.deadline_buckets import Bucket
    from replication.partition import Partition
    from storage.errors import StorageFailed

FOREVER = math.inf
PROMISES_MAX = 32
"""Of a connection; what is behind them waits."""


class Owed(Protocol):
    """An answer in the queue; `settled`: it may leave."""

    answer: bytes
    settled: bool
    deadline: float

    def expire(self) -> None:
        """Its time is over."""

    def give_up(self) -> None:
        """The connection is gone."""


class Queue(deque["Owed"]):
    """The answers that a connection owes, in order. One entry among the deadlines, for the earliest."""

    __slots__ = ("_bucket", "_connection", "_due")

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._bucket: Bucket | None = None
        self._due = FOREVER

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)  # it is an entry of a bucket, and no other is like it

    def __eq__(self, other: object) -> bool:
        return self is other

    def look_at(self, deadline: float) -> None:
        """Expire what is not settled by then (seconds on the loop's clock)."""
        if deadline < self._due:
            self.forget()
            self._due = deadline
            hub = self._connection.hub
            self._bucket = hub.deadlines.add(self, max(0, int((deadline - hub.loop.time()) * 1000)))

    def forget(self) -> None:
        """Nothing is to be expired."""
        if self._bucket is not None:
            self._bucket.pop(self, None)
        self._bucket, self._due = None, FOREVER

    def expire(self) -> None:
        """The earliest deadline has come; what it was for may be settled long ago."""
        self._bucket, self._due = None, FOREVER
        now = self._connection.hub.loop.time()
        for promise in list(self):
            if promise.deadline <= now:
                promise.expire()
            elif not promise.settled:
                self.look_at(promise.deadline)


Promises: TypeAlias = "Queue | tuple[()]"
"""Of one connection; a queue is made with the first."""
NO_PROMISES: Promises = ()


class Refusing(Protocol):
    """Whoever knows how a refusal looks in the answer to a request."""

    def refusal(self, index: int, correlation_id: int, error: ErrorCode, message: str | None) -> bytes:
        """The whole frame."""


class _Promised:
    """What a connection waits for whose next request may be served only when its promises are kept."""

    __slots__ = ()

    def cancel(self, connection: Connection) -> None:
        """The promises are given up apart (`give_up`)."""


PROMISED = _Promised()


class Promise:
    """One answer. `settled`: it may leave."""

    __slots__ = (
        "_connection",
        "_correlation_id",
        "_last_offset",
        "_refusing",
        "_replica",
        "answer",
        "deadline",
        "settled",
    )

    def __init__(
        self,
        connection: Connection,
        refusing: Refusing,
        replica: Partition,
        last_offset: int,
        correlation_id: int,
        answer: bytes,
        timeout_ms: int,
    ) -> None:
        self._connection, self._refusing, self._replica = connection, refusing, replica
        self._last_offset, self._correlation_id = last_offset, correlation_id
        self.answer = answer
        self.settled = False
        self.deadline = connection.hub.loop.time() + timeout_ms / 1000
        replica.await_commit(self, last_offset)
        promised = connection.promised
        if type(promised) is not Queue:
            promised = connection.promised = Queue(connection)
        promised.append(self)
        promised.look_at(self.deadline)
        if len(promised) >= PROMISES_MAX:
            connection.waiting = PROMISED

    def wake(self) -> None:
        """The records are committed, or this broker does not lead any more."""
        verdict = self._replica.committed(self._last_offset)
        if verdict is None:
            self._replica.await_commit(self, self._last_offset)
        elif verdict == ErrorCode.NONE:
            self._settle()
        else:
            self._refuse(verdict, verdict.message)

    def expire(self) -> None:
        """The time of the request is over. Its records stay, and may be committed later."""
        if not self.settled:
            self._refuse(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT.message)

    def failed(
        self,
        replica: Partition,
        connection: Connection,
        position: int,
        correlation_id: int,
        error: StorageFailed,
    ) -> None:
        """See `Turn`: the records could not be written, or not be synced."""
        if not self.settled:
            self._refuse(error.error, str(error))

    def give_up(self) -> None:
        """The connection is gone."""
        self._let_go()
        self.settled = True

    def _refuse(self, error: ErrorCode, message: str | None) -> None:
        self.answer = self._refusing.refusal(self._replica.index, self._correlation_id, error, message)
        self._settle()

    def _let_go(self) -> None:
        if self._replica.commits is not None:
            self._replica.commits.discard(self)

    def _settle(self) -> None:
        self._let_go()
        self.settled = True
        connection = self._connection
        promised = connection.promised
        if promised and promised[0] is self:
            pass_on(connection)


class Refused:
    """The answer to a request that was refused behind promises: it leaves after them."""

    __slots__ = ("answer",)

    settled = True
    deadline = FOREVER

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def expire(self) -> None:
        """It never does."""

    def give_up(self) -> None:
        """Nothing holds it."""


def pass_on(connection: Connection) -> None:
    """The promise in front is settled: it and those behind it that are, too, leave."""
    promised, out = connection.promised, connection.out
    assert type(promised) is Queue
    first = not out
    while promised and promised[0].settled:
        out.append(promised.popleft().answer)
    if connection.closed:
        return
    if connection.waiting is PROMISED:
        connection.waiting = None
        connection.hub.loop.call_soon(connection.go_on)
    elif connection.in_turn:
        return  # they leave with the turn
    elif promised:
        if first:  # not at once: what commits this one often commits the next
            connection.hub.loop.call_soon(connection.go_on)
    elif not connection.full:
        connection.flush()


def give_up(connection: Connection) -> None:
    """The connection is gone: nobody is to be answered."""
    promised, connection.promised = connection.promised, NO_PROMISES
    if type(promised) is Queue:
        promised.forget()
    for promise in promised:
        promise.give_up()

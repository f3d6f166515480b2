"""A fetch of tens of thousands of partitions, worked on in pieces.

What `FetchContext` does in one call takes 10 us for each partition. Here the same is done by generators that
yield behind each piece, so that others have the event loop in between. Meanwhile records come and sessions
end, and the answer is right all the same:

- A row is read in one go, and what it tells was true together. Rows may be of different moments.
- The waiter stands with a partition before that is read, so it hears of everything that the answer lacks. It
  stays there until `leave`; who is woken while it reads, reads again.
- An entry of a session that gets news behind its reading keeps them for the next request, as `told` notes
  what was read and sent, not what is there by then.
- A session that another request uses or closes meanwhile is left alone at once; the answer is error 71.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Final, TypeVar

from protocol.errors import ErrorCode
from replication.fetch import Answer, Budget, FetchParams, PartitionKey, Row, Wanted, read_some
from replication.fetch_session import FetchSession, read_some_news
from replication.fetch_sessions import NO_SESSION, FetchContext, FetchSessions, Kind
from replication.follower_fetch import FollowerFetch
from replication.partition import Partition
from replication.waiting import Waiter

PIECE: Final = 500
"""Partitions in a piece: a few milliseconds."""

T = TypeVar("T")
Steps = Generator[None, None, T]


def open_in_pieces(
    sessions: FetchSessions,
    params: FetchParams,
    session_id: int,
    epoch: int,
    wanted: Sequence[Wanted],
    forgotten: Sequence[PartitionKey],
    now_ms: int,
) -> Steps[FetchContext]:
    """As `FetchSessions.open`."""
    context = sessions.begin(params, session_id, epoch, wanted)
    session = context.session
    if session is None:
        return context
    for some in _pieces(wanted):
        sessions.update(session, some, ())
        yield
        if context.overtaken():
            return context
    for keys in _pieces(forgotten):
        sessions.update(session, (), keys)
        yield
        if context.overtaken():
            return context
    return sessions.updated(context, wanted, now_ms)


class BigFetch:
    """Reads a context and answers it, in pieces. `waiter` is woken when there may be more to read."""

    __slots__ = ("_context", "_parked", "_waiter")

    def __init__(self, context: FetchContext, waiter: Waiter) -> None:
        self._context, self._waiter = context, waiter
        self._parked: dict[Partition, None] = {}

    def reading(self, follower: FollowerFetch | None = None) -> Steps[Answer]:
        """As `FetchContext.read`, and as `park` too."""
        context = self._context
        if context.kind is Kind.ERROR:
            return Answer([], 0, True)
        if context.session is None:
            return (yield from self._read_listed(follower))
        return (yield from self._read_news(context.session, follower))

    def _read_listed(self, follower: FollowerFetch | None) -> Steps[Answer]:
        params, lookup = self._context.params, self._context.sessions.lookup
        budget = Budget(params)
        rows: list[Row] = []
        ready, absent = params.max_wait_ms <= 0, 0
        for wanted in _pieces(self._context.listed):
            if params.max_wait_ms > 0:
                self._stand_by(wanted)
            urgent, missing = read_some(wanted, lookup, params, budget, rows, follower)
            ready, absent = ready or urgent, absent + missing
            yield
        return Answer(rows, budget.taken, ready or absent == len(rows) or budget.satisfies(params))

    def _stand_by(self, wanted: Sequence[Wanted]) -> None:
        lookup, waiter = self._context.sessions.lookup, self._waiter
        for entry in wanted:
            partition = lookup(entry)
            if isinstance(partition, Partition):
                partition.waiters[waiter] = None
                self._parked[partition] = None

    def _read_news(self, session: FetchSession, follower: FollowerFetch | None) -> Steps[Answer]:
        context = self._context
        params, lookup = context.params, context.sessions.lookup
        budget = Budget(params)
        rows: list[Row] = []
        ready, absent = params.max_wait_ms <= 0, 0
        if not context.overtaken():
            context.heard_of(follower)
            if params.max_wait_ms > 0:
                session.waiter = self._waiter
        looked_at = session.looked_at()
        for watches in _pieces(looked_at):
            if context.overtaken():
                break
            urgent, missing = read_some_news(session, watches, lookup, params, budget, rows, follower)
            ready, absent = ready or urgent, absent + missing
            yield
        if context.overtaken():
            return Answer([], 0, True)
        session.trim(len(looked_at))
        ready = ready or absent == len(session.watches) or budget.satisfies(params)
        return Answer(rows, budget.taken, ready)

    def leave(self) -> None:
        """Be woken no more."""
        session = self._context.session
        if session is not None and session.waiter is self._waiter:
            session.waiter = None
        for partition in self._parked:
            partition.waiters.pop(self._waiter, None)
        self._parked.clear()

    def responding(self, answer: Answer, now_ms: int) -> Steps[tuple[ErrorCode, int, list[Row]]]:
        """As `FetchContext.respond`."""
        context = self._context
        if context.kind is Kind.FULL:
            session_id = yield from self._tell_first(answer.rows, now_ms)
            return ErrorCode.NONE, session_id, answer.rows
        session = context.session
        if session is not None:
            for rows in _pieces(answer.rows):
                if context.overtaken():
                    break
                session.tell(rows)
                yield
        told = Answer([], answer.size_bytes, answer.ready) if session is not None else answer
        error, session_id, _ = context.respond(told, now_ms)
        return error, session_id, answer.rows if error == ErrorCode.NONE else []

    def _tell_first(self, rows: Sequence[Row], now_ms: int) -> Steps[int]:
        sessions, params = self._context.sessions, self._context.params
        if not sessions.has_room_for(params, len(rows), now_ms):
            return NO_SESSION
        session = sessions.new(params, now_ms)
        sessions.watched += len(rows)  # nobody else takes that room meanwhile
        try:
            for some in _pieces(rows):
                session.tell_first(some)
                yield
        finally:
            sessions.watched -= len(rows)
        if not sessions.has_room_for(params, len(rows), now_ms):
            return NO_SESSION
        sessions.admit(session, now_ms)
        return session.session_id


def _pieces(things: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(things), PIECE):
        yield things[at : at + PIECE]

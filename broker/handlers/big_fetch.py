"""Fetches that name thousands of partitions, or whose session has news of as many, without a long hold.

The body is decoded, and the answer encoded, in a thread; opening, reading and telling the session go in
pieces (`replication.big_fetch`), each in its turn (`runtime.pieces`). The connection waits meanwhile, so
answers stay in order. What comes out is what the way of `FetchHandler` gives.

A request that waits for more to read keeps its task and its partitions. All that wait without a session may
do so for `PARKED_MAX` of them together; who comes then is answered with what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from broker.handlers.fetch_answers import encode_fetch
from broker.handlers.fetch_request import (
    CONVERTED_UPTO,
    forgotten_of,
    params_of,
    session_of,
    wanted_of,
)
from broker.handlers.leader_hints import Endpoint
from broker.net.answers import put_parts
from protocol import messages as m
from protocol.errors import ErrorCode, MalformedMessage
from replication.big_fetch import BigFetch as Work
from replication.big_fetch import Steps, open_in_pieces
from replication.fetch import Answer, FetchParams, PartitionKey, Row, Wanted, validate
from replication.follower_fetch import FollowerFetch
from runtime.files import Buffer, FileRegion

if TYPE_CHECKING:
    from broker.handlers.fetch import FetchHandler
    from broker.net.connection import Connection
    from protocol.headers import RequestHeader
    from replication.cluster.replica_reads import ReplicaReads
    from replication.fetch_sessions import FetchContext

PARKED_MAX: Final = 400_000
"""Of about 150 bytes."""
ZSTD_FROM: Final = 10
HINTS_FROM: Final = 16

T = TypeVar("T")


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


@dataclass(slots=True, frozen=True)
class Asked:
    """A decoded request."""

    params: FetchParams
    session_id: int
    session_epoch: int
    wanted: list[Wanted]
    forgotten: list[PartitionKey]
    refusal: ErrorCode
    follower: FollowerFetch | None


class BigFetch:
    """One request, from its body or from its open context to its answer. What its connection waits for."""

    __slots__ = (
        "_awaited",
        "_bucket",
        "_connection",
        "_handler",
        "_has_news",
        "_header",
        "_inside",
        "_is_late",
        "_parked",
    )

    def __init__(self, handler: FetchHandler, connection: Connection, header: RequestHeader) -> None:
        self._handler, self._connection, self._header = handler, connection, header
        self._inside = False  # the gate of big bodies
        self._is_late = self._has_news = False
        self._awaited: asyncio.Future[None] | None = None
        self._bucket: dict[Any, None] | None = None
        self._parked = 0  # partitions in `handler.parked`

    def serve(self, data: bytes) -> None:
        """Serve a request whose body this is, and that has entered the gate of big bodies."""
        self._inside = True
        self._begin(self._serve(data))

    def answer(self, context: FetchContext, follower: FollowerFetch | None) -> None:
        """Answer a request that has so much news that it need not wait."""
        self._is_late = True
        self._begin(self._answer(context, follower))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._connection.waiting = self
        name = f"big fetch of {self._connection.peer}"
        self._connection.hub.env.tasks.spawn(name, self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        connection = self._connection
        try:
            await work
        except ClientGone:
            pass
        except BaseException:
            connection.shut()  # an answer is missing: nothing behind it may be answered
            raise
        finally:
            self._leave_gate()
            self._forget_deadline()
            self._handler.parked -= self._parked
            if connection.waiting is self:
                connection.resume()

    # -- what it waits for

    def wake(self) -> None:
        """There may be more to read."""
        self._has_news = True
        self._go_on()

    def expire(self) -> None:
        """The waiting time is over: answer with what there is."""
        self._is_late = True
        self._go_on()

    def cancel(self, connection: Connection) -> None:
        """The connection is gone. The task finds out before its next piece."""
        self._forget_deadline()
        self._go_on()

    def _go_on(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    def _forget_deadline(self) -> None:
        if self._bucket is not None:
            self._bucket.pop(self, None)

    def _leave_gate(self) -> None:
        if self._inside:
            self._inside = False
            self._handler.context.big_bodies.leave()

    # -- the work

    async def _serve(self, data: bytes) -> None:
        connection, header = self._connection, self._header
        version = header.api_version
        try:
            asked = await self._apart(
                _decoded,
                version,
                data,
                self._handler.max_bytes,
                self._handler.reads,
                connection.listener.name,
            )
        except MalformedMessage as error:
            name = f"Fetch v{version} from client {header.client_id!r}"
            connection.close(f"{name} does not parse: {error}")
            return
        del data  # a long poll need not keep it
        if asked.refusal != ErrorCode.NONE:
            connection.out += encode_fetch(version, header.correlation_id, (), error=asked.refusal)
            return
        context = await self._in_pieces(
            open_in_pieces(
                self._handler.sessions,
                asked.params,
                asked.session_id,
                asked.session_epoch,
                asked.wanted,
                asked.forgotten,
                connection.hub.env.clock.now_ms(),
            )
        )
        await self._answer(context, asked.follower)

    async def _answer(self, context: FetchContext, follower: FollowerFetch | None) -> None:
        work = Work(context, self)
        try:
            answer = await self._read(context, work, follower)
        finally:
            work.leave()
        told = work.responding(answer, self._connection.hub.env.clock.now_ms())
        error, session_id, rows = await self._in_pieces(told)
        if self._handler.reads is not None:
            self._handler.reads.sent(context.params, rows)
        endpoints = await self._look_over(rows)
        header = self._header
        parts = await self._apart(
            _encoded, header.api_version, header.correlation_id, rows, error, session_id, endpoints
        )
        put_parts(self._connection, parts)

    async def _read(self, context: FetchContext, work: Work, follower: FollowerFetch | None) -> Answer:
        while True:
            self._has_news = False
            answer = await self._in_pieces(work.reading(follower))
            if follower is not None:
                follower.settle()
                follower = None  # read again, the request says nothing new
            if answer.ready or self._is_late or not self._may_wait(context):
                return answer
            if not self._has_news:
                answer.rows.clear()
                self._leave_gate()
                self._awaited = self._connection.hub.loop.create_future()
                await self._awaited

    def _may_wait(self, context: FetchContext) -> bool:
        """Note the deadline, the first time."""
        if self._bucket is None:
            handler, count = self._handler, len(context.listed)
            if handler.parked + count > PARKED_MAX:
                return False
            self._parked = count
            handler.parked += count
            self._bucket = self._connection.hub.deadlines.add(self, context.params.max_wait_ms)
        return True

    async def _look_over(self, rows: list[Row]) -> list[Endpoint]:
        """What the handler does with the rows of an answer before it is encoded."""
        handler, version = self._handler, self._header.api_version
        pieces = handler.context.pieces
        if version < ZSTD_FROM:
            async for some in pieces.of(rows):
                handler.refuse_unreadable(some, version)
            if version <= CONVERTED_UPTO and any(row.length for row in rows):
                async with handler.conversions:
                    await handler.convert(rows, version)
        leaders: list[int] = []
        if version >= HINTS_FROM:
            async for some in pieces.of(rows):
                leaders += handler.hint(some)
        return handler.endpoints(self._connection, leaders)

    async def _in_pieces(self, steps: Steps[T]) -> T:
        turn = self._handler.context.pieces.turn
        with closing(steps):
            while True:
                await turn()
                if self._connection.closed:
                    raise ClientGone
                try:
                    next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result

    async def _apart(self, function: Any, *args: Any) -> Any:
        result = await self._connection.hub.env.run_blocking(function, *args)
        if self._connection.closed:
            raise ClientGone
        return result


def _decoded(version: int, data: bytes, max_bytes: int, reads: ReplicaReads | None, listener: str) -> Asked:
    request, _ = m.FetchRequest.decode(version, data)
    params, wanted = params_of(version, request, max_bytes), wanted_of(request)
    follower = None
    if reads is not None:
        params = reads.params(request, params, listener)
        follower = reads.follower(version, request, params)
    return Asked(
        params,
        *session_of(version, request),
        wanted,
        forgotten_of(version, request),
        validate(params, wanted),
        follower,
    )


def _encoded(
    version: int,
    correlation_id: int,
    rows: list[Row],
    error: ErrorCode,
    session_id: int,
    endpoints: Sequence[Endpoint],
) -> list[Buffer | FileRegion]:
    """As `encode_fetch`, with what lies in memory joined between the slices of files."""
    parts = encode_fetch(
        version, correlation_id, rows, error=error, session_id=session_id, endpoints=endpoints
    )
    rows.clear()
    joined: list[Buffer | FileRegion] = []
    run: list[Buffer] = []
    for part in parts:
        if isinstance(part, FileRegion):
            joined += (b"".join(run), part)
            run = []
        else:
            run.append(part)
    joined.append(b"".join(run))
    return joined

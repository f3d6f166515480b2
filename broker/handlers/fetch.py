"""Fetch (1), versions 0-18: read records, long polls, incremental sessions.

v0-1 message format 0, v2-3 format 1 (converted here), v3 a limit for the whole answer, v4 isolation level, v5
log start offset, v7 sessions (KIP-227), v9 leader epoch check, v10 zstd, v11 reads from followers, v12
flexible and divergence, v13 topic ids, v15 replica state in a tag, v16 leader hints, v17 directory id, v18
high watermark tag.

Requests that repeat without a session are served by `FetchShape`; this is the general way. A request that
must wait parks with its connection: no task and no timer, an entry in the waiters of its partitions or its
session and in a bucket of deadlines. What names, or has news of, thousands of partitions goes the way of
`big_fetch`.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from broker.handlers.big_fetch import BigFetch
from broker.handlers.fetch_answers import encode_fetch
from broker.handlers.fetch_old_formats import to_old_format, unsupported_zstd
from broker.handlers.fetch_request import (
    CONVERTED_UPTO,
    NO_SESSION_EPOCH,
    forgotten_of,
    params_of,
    session_of,
    wanted_of,
)
from broker.handlers.fetch_shapes import FetchShape
from broker.handlers.leader_hints import Endpoint, current_leader, endpoints_of
from broker.handlers.parked_fetch import ParkedFetch
from broker.handlers.replica_fetch import shape_of
from broker.net.answers import put_parts
from broker.net.big_bodies import BIG_BODY_BYTES
from broker.net.connection import SHAPE_BYTES_MAX
from broker.net.hub import log
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, MalformedMessage
from protocol.headers import RequestHeader
from replication.fetch import Answer, FetchParams, Row, Wanted, validate
from replication.fetch_sessions import FetchContext, FetchSessions
from replication.partition import Partition
from runtime.network import grow_send_buffer
from storage.errors import StorageFailed

if TYPE_CHECKING:
    from broker.context import BrokerContext
    from broker.net.connection import Connection
    from replication.cluster.replica_reads import ReplicaReads

FLEXIBLE_FROM: Final = 12
HINTS_FROM: Final = 16
SHAPES_FROM: Final = 10  # before, zstd batches have to be looked for
CONVERSIONS_AT_ONCE: Final = 2
FOLLOWER_SEND_BYTES: Final = 1 << 20  # what replica.fetch.max.bytes is unless set

_I64 = struct.Struct(">q")


class WaitingFetch(ParkedFetch):
    """A request of the general way."""

    __slots__ = ("_asked",)

    def __init__(
        self, handler: FetchHandler, connection: Connection, header: RequestHeader, context: FetchContext
    ) -> None:
        self._handler, self._connection, self._asked, self._context = handler, connection, header, context
        self.park()

    def _header(self) -> RequestHeader:
        return self._asked

    def _answer(self, answer: Answer) -> None:
        self._handler.answer(self._connection, self._asked, self._context, answer)


class FetchHandler:
    """Serves Fetch on raw frames."""

    min_version = 0
    max_version = 18

    __slots__ = ("context", "conversions", "max_bytes", "parked", "reads", "sessions")

    def __init__(self, context: BrokerContext, sessions: FetchSessions) -> None:
        self.context = context
        self.sessions = sessions
        self.reads: ReplicaReads | None = None  # in a cluster
        self.parked = 0  # partitions that big fetches without a session wait for
        self.conversions = asyncio.Semaphore(CONVERSIONS_AT_ONCE)
        self.max_bytes = context.config.integer("fetch.max.bytes")

    def serve(
        self,
        connection: Connection,
        header: RequestHeader,
        buf: bytearray,
        at: int,
        body: int,
        end: int,
        own: bool,
    ) -> bool:
        """See `HotHandler`."""
        if end - body > BIG_BODY_BYTES:
            return self._serve_big(connection, header, bytes(buf[body:end]))
        request, _ = m.FetchRequest.decode(header.api_version, buf, body, end)
        if connection.in_turn:
            connection.hub.turn.flush()  # what this client wrote before, it sees now
        params = params_of(header.api_version, request, self.max_bytes)
        follower = None
        if self.reads is not None:
            params = self.reads.params(request, params, connection.listener.name)
            follower = self.reads.follower(header.api_version, request, params)
        wanted = wanted_of(request)
        refusal = validate(params, wanted)
        if refusal != ErrorCode.NONE:
            connection.out += encode_fetch(header.api_version, header.correlation_id, (), error=refusal)
            return True
        context = self.sessions.open(
            params,
            *session_of(header.api_version, request),
            wanted,
            forgotten_of(header.api_version, request),
            connection.hub.env.clock.now_ms(),
        )
        if len(wanted) == 1 and header.api_version >= SHAPES_FROM:
            self._remember(connection, header, request, params, wanted[0], buf, at, body, end)
        if context.is_big:
            BigFetch(self, connection, header).answer(context, follower)
            return True
        answer = context.read(follower)
        if follower is not None:
            follower.settle()
            shape = shape_of(self, header, request, context, bytes(buf[at:end]), body - at)
            if shape is not None:
                grow_send_buffer(connection.transport, FOLLOWER_SEND_BYTES)
                connection.remember(shape)
        if answer.ready or connection.late:
            if connection.late or connection.bucket is not None:
                connection.served()  # it was parked as a shape, and the partition changed
            self.answer(connection, header, context, answer)
        else:
            WaitingFetch(self, connection, header, context)
        return True

    def _serve_big(self, connection: Connection, header: RequestHeader, data: bytes) -> bool:
        if connection.in_turn:
            connection.hub.turn.flush()
        if not self.context.big_bodies.enter(connection):
            return False
        BigFetch(self, connection, header).serve(data)
        return True

    def answer(
        self, connection: Connection, header: RequestHeader, context: FetchContext, answer: Answer
    ) -> None:
        """Pass the rows to the connection, converted for clients that know the old formats only."""
        version = header.api_version
        error, session_id, rows = context.respond(answer, connection.hub.env.clock.now_ms())
        if self.reads is not None:
            self.reads.sent(context.params, rows)
        if version < SHAPES_FROM:
            self.refuse_unreadable(rows, version)
            if version <= CONVERTED_UPTO and any(row.length for row in rows):
                self._convert(connection, header, rows)
                return
        endpoints: list[Endpoint] = []
        if version >= HINTS_FROM:
            endpoints = self.endpoints(connection, self.hint(rows))
        self._send(connection, header, rows, error, session_id, endpoints)

    def _send(
        self,
        connection: Connection,
        header: RequestHeader,
        rows: list[Row],
        error: ErrorCode,
        session_id: int,
        endpoints: list[Endpoint],
    ) -> None:
        parts = encode_fetch(
            header.api_version,
            header.correlation_id,
            rows,
            error=error,
            session_id=session_id,
            endpoints=endpoints,
        )
        put_parts(connection, parts)

    def hint(self, rows: Sequence[Row]) -> list[int]:
        """Tell where the leaders are (F13), and which brokers these are."""
        image = self.context.image
        leaders: list[int] = []
        for row in rows:
            if row.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                row.leader = current_leader(image, row.wanted.topic, row.wanted.topic_id, row.index)
                if row.leader is not None:
                    leaders.append(row.leader[0])
        return leaders

    def endpoints(self, connection: Connection, leaders: list[int]) -> list[Endpoint]:
        """Where the leaders are reached."""
        return endpoints_of(self.context.image, connection.listener.name, leaders) if leaders else []

    # -- old clients

    def refuse_unreadable(self, rows: Sequence[Row], version: int) -> None:
        """Fail what this version cannot express; a topic's settings count even where there are no records."""
        for row in rows:
            partition = self.context.replicas.wanted_partition(row.wanted)
            if row.error != ErrorCode.NONE or not isinstance(partition, Partition):
                continue
            config = partition.log.config
            try:
                zstd = unsupported_zstd(row, config)
            except OSError as error:
                self._unread(row, error)
                continue
            if zstd:
                _fail(row, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            elif version <= CONVERTED_UPTO and not config.message_downconversion_enable:
                _fail(row, ErrorCode.UNSUPPORTED_VERSION)

    def _convert(self, connection: Connection, header: RequestHeader, rows: list[Row]) -> None:
        """Down-convert in a thread, which reads the slices and decompresses, while the connection waits."""
        connection.waiting = CONVERTING
        connection.hub.env.tasks.spawn(
            f"fetch conversion for {connection.peer}", self._converted(connection, header, rows)
        )

    async def _converted(self, connection: Connection, header: RequestHeader, rows: list[Row]) -> None:
        try:
            async with self.conversions:
                await self.convert(rows, header.api_version)
                if not connection.closed:
                    self._send(connection, header, rows, ErrorCode.NONE, 0, [])
                    connection.flush()
        except BaseException:
            connection.shut()  # an answer is missing: nothing behind it may be answered
            raise
        finally:
            if not connection.closed:
                connection.resume()

    async def convert(self, rows: list[Row], version: int) -> None:
        """Down-convert the records of an answer in a thread; hold one of `conversions` meanwhile."""
        limits = [(row, row.wanted.max_bytes) for row in rows if row.length]
        for row, max_bytes in limits:
            try:
                data = await self.context.env.run_blocking(
                    to_old_format, row.data, row.wanted.fetch_offset, version, max_bytes
                )
            except OSError as error:
                self._unread(row, error)
                continue
            if isinstance(data, ErrorCode):
                _fail(row, data)
            else:
                row.data, row.length = data, len(data)

    def _unread(self, row: Row, error: OSError) -> None:
        """The disk did not give the records."""
        partition = self.context.replicas.wanted_partition(row.wanted)
        if isinstance(partition, Partition):
            with suppress(StorageFailed):
                partition.log.failed(error, "read")
        _fail(row, ErrorCode.KAFKA_STORAGE_ERROR)

    # -- the memo

    def _remember(
        self,
        connection: Connection,
        header: RequestHeader,
        request: m.FetchRequest,
        params: FetchParams,
        wanted: Wanted,
        buf: bytearray,
        at: int,
        body: int,
        end: int,
    ) -> None:
        """Keep the shape of a consumer's fetch of one partition without a session, if nothing in it needs a
        look next time.
        """
        partition = self.context.replicas.wanted_partition(wanted)
        if (
            end - at > SHAPE_BYTES_MAX
            or not isinstance(partition, Partition)
            or not partition.is_leader
            or request.session_id != 0
            or request.session_epoch != NO_SESSION_EPOCH
            or request.forgotten_topics_data
            or params.replica_id >= 0
            or params.redirect is not None
            or wanted.leader_epoch not in (-1, partition.leader_epoch)
            or wanted.last_fetched_epoch != -1
        ):
            return
        hole = _offset_at(header.api_version, request, wanted, buf, body, end)
        if hole < 0:
            return
        try:
            shape = FetchShape(
                ApiKey.FETCH << 16 | header.api_version,
                bytes(buf[at + 12 : hole]),
                bytes(buf[hole + 8 : end]),
                partition,
                wanted.topic,
                wanted.topic_id,
                wanted.index,
                wait_ms=params.max_wait_ms,
                min_bytes=min(params.min_bytes, params.max_bytes),
                limit=min(wanted.max_bytes, params.max_bytes),
                committed=params.isolation == 1,
            )
        except ValueError:
            log.debug("No shape for a fetch of %s", partition)
            return
        connection.remember(shape)


def _offset_at(
    version: int, request: m.FetchRequest, wanted: Wanted, buf: bytearray, body: int, end: int
) -> int:
    """Where the fetch offset of the only partition stands; -1 if that cannot be told for certain.

    Proved by a trial: another offset at that place must decode to the same request with that other offset.
    """
    offset = _I64.pack(wanted.fetch_offset)
    frame = bytes(buf[body:end])
    if frame.count(offset) != 1:
        return -1
    hole = frame.find(offset)
    other = wanted.fetch_offset ^ 0x0F1E2D3C4B5A6978
    try:
        trial, _ = m.FetchRequest.decode(version, frame[:hole] + _I64.pack(other) + frame[hole + 8 :])
    except MalformedMessage:
        return -1
    partition = trial.topics[0].partitions[0]
    if partition.fetch_offset != other:
        return -1
    partition.fetch_offset = wanted.fetch_offset
    return body + hole if trial == request else -1


def _fail(row: Row, error: ErrorCode) -> None:
    row.error = error
    row.data, row.length = b"", 0
    row.high_watermark = row.last_stable_offset = row.log_start_offset = -1


class _Converting:
    """The connection waits for records in an old format."""

    __slots__ = ()

    def cancel(self, connection: Connection) -> None:
        """The conversion ends by itself and is thrown away."""


CONVERTING = _Converting()

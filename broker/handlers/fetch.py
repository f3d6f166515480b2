"""Fetch (1), versions 0-18: read records, long polls, incremental sessions.

v0-1 message format 0, v2-3 format 1 (converted here), v3 a limit for the whole answer, v4 isolation level, v5
log start offset, v7 sessions (KIP-227), v9 leader epoch check, v10 zstd, v11 reads from followers, v12
flexible and divergence, v13 topic ids, v15 replica state in a tag, v16 leader hints, v17 directory id, v18
high watermark tag.

Requests that repeat without a session are served by `FetchShape`; this is the general way. A request that
must wait parks with its connection: no task and no timer, an entry in the waiters of its partitions or its
session and in a bucket of deadlines.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any, Final

from broker.handlers.fetch_answers import encode_fetch
from broker.handlers.fetch_old_formats import to_old_format, unsupported_zstd
from broker.handlers.fetch_shapes import FetchShape
from broker.handlers.leader_hints import Endpoint, current_leader, endpoints_of
from broker.net.connection import SHAPE_BYTES_MAX
from broker.net.hub import log
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, MalformedMessage
from protocol.headers import RequestHeader
from replication.fetch import Answer, FetchParams, PartitionKey, Row, Wanted, validate
from replication.fetch_sessions import FetchContext, FetchSessions
from replication.partition import Partition
from runtime.files import FileRegion

if TYPE_CHECKING:
    from broker.context import BrokerContext
    from broker.net.connection import Connection

FLEXIBLE_FROM: Final = 12
IDS_FROM: Final = 13
HINTS_FROM: Final = 16
SHAPES_FROM: Final = 10  # before, zstd batches have to be looked for
SESSIONS_FROM: Final = 7
CONVERTED_UPTO: Final = 3
CONVERTED_BYTES: Final = 4 << 20  # of an answer, before its conversion; it and the result lie in memory
CONVERSIONS_AT_ONCE: Final = 2
NO_SESSION_EPOCH: Final = -1
INT32_MAX: Final = 2**31 - 1

_I64 = struct.Struct(">q")


class ParkedFetch:
    """A request of the general way that waits for more to read. It is its own entry wherever it is parked."""

    __slots__ = ("_bucket", "_connection", "_context", "_handler", "_header")

    def __init__(
        self, handler: FetchHandler, connection: Connection, header: RequestHeader, context: FetchContext
    ) -> None:
        self._handler, self._connection, self._header, self._context = handler, connection, header, context
        self._bucket: dict[Any, None] = connection.hub.deadlines.add(self, context.params.max_wait_ms)
        connection.waiting = self
        context.park(self)

    def wake(self) -> None:
        """There may be more to read."""
        self._context.unpark(self)
        answer = self._context.read()
        if answer.ready:
            self._finish(answer)
        else:
            self._context.park(self)

    def expire(self) -> None:
        """The waiting time is over: answer with what there is."""
        self._context.unpark(self)
        self._finish(self._context.read())

    def cancel(self, connection: Connection) -> None:
        """The connection is gone."""
        self._context.unpark(self)
        self._bucket.pop(self, None)

    def _finish(self, answer: Answer) -> None:
        self._bucket.pop(self, None)
        connection = self._connection
        connection.waiting = None
        if not connection.closed:
            self._handler.answer(connection, self._header, self._context, answer)
            if connection.waiting is None:
                connection.resume()


class FetchHandler:
    """Serves Fetch on raw frames."""

    min_version = 0
    max_version = 18

    __slots__ = ("_context", "_conversions", "_max_bytes", "sessions")

    def __init__(self, context: BrokerContext, sessions: FetchSessions) -> None:
        self._context = context
        self.sessions = sessions
        self._conversions = asyncio.Semaphore(CONVERSIONS_AT_ONCE)
        self._max_bytes = context.config.integer("fetch.max.bytes")

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
        request, _ = m.FetchRequest.decode(header.api_version, buf, body, end)
        if connection.in_turn:
            connection.hub.turn.flush()  # what this client wrote before, it sees now
        params = self._params(header.api_version, request)
        wanted = [
            Wanted(
                topic.topic,
                topic.topic_id,
                partition.partition,
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
                partition.log_start_offset,
            )
            for topic in request.topics
            for partition in topic.partitions
        ]
        refusal = validate(params, wanted)
        if refusal != ErrorCode.NONE:
            connection.out += encode_fetch(header.api_version, header.correlation_id, (), error=refusal)
            return True
        has_sessions = header.api_version >= SESSIONS_FROM
        context = self.sessions.open(
            params,
            request.session_id if has_sessions else 0,
            request.session_epoch if has_sessions else NO_SESSION_EPOCH,
            wanted,
            _forgotten(header.api_version, request),
            connection.hub.env.clock.now_ms(),
        )
        if len(wanted) == 1 and header.api_version >= SHAPES_FROM:
            self._remember(connection, header, request, params, wanted[0], buf, at, body, end)
        answer = context.read()
        if answer.ready or connection.late:
            if connection.late or connection.bucket is not None:
                connection.served()  # it was parked as a shape, and the partition changed
            self.answer(connection, header, context, answer)
        else:
            ParkedFetch(self, connection, header, context)
        return True

    def _params(self, version: int, request: m.FetchRequest) -> FetchParams:
        replica_id = request.replica_id if version < 15 else request.replica_state.replica_id
        limit = request.max_bytes if version > 2 else INT32_MAX
        if version <= CONVERTED_UPTO:
            limit = min(limit, CONVERTED_BYTES)
        return FetchParams(
            version=version,
            max_wait_ms=request.max_wait_ms,
            min_bytes=request.min_bytes,
            max_bytes=limit if replica_id >= 0 else min(limit, self._max_bytes),
            isolation=request.isolation_level,
            replica_id=replica_id,
        )

    def answer(
        self, connection: Connection, header: RequestHeader, context: FetchContext, answer: Answer
    ) -> None:
        """Pass the rows to the connection, converted for clients that know the old formats only."""
        version = header.api_version
        error, session_id, rows = context.respond(answer, connection.hub.env.clock.now_ms())
        if version < SHAPES_FROM:
            self._refuse_unreadable(rows, version)
            if version <= CONVERTED_UPTO and any(row.length for row in rows):
                self._convert(connection, header, rows)
                return
        endpoints: list[Endpoint] = []
        if version >= HINTS_FROM:
            endpoints = self._hint(connection, rows)
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
        connection.out += parts
        for part in parts:
            if type(part) is FileRegion:
                connection.regions = True
            else:
                connection.held_bytes += len(part)  # type: ignore[arg-type]

    def _hint(self, connection: Connection, rows: list[Row]) -> list[Endpoint]:
        """Tell where the leader is (F13)."""
        image = self._context.image
        leaders: list[int] = []
        for row in rows:
            if row.error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                row.leader = current_leader(image, row.wanted.topic, row.wanted.topic_id, row.index)
                if row.leader is not None:
                    leaders.append(row.leader[0])
        return endpoints_of(image, connection.listener.name, leaders) if leaders else []

    # -- old clients

    def _refuse_unreadable(self, rows: list[Row], version: int) -> None:
        """Fail what this version cannot express; a topic's settings count even where there are no records."""
        for row in rows:
            partition = self._context.replicas.wanted_partition(row.wanted)
            if row.error != ErrorCode.NONE or not isinstance(partition, Partition):
                continue
            config = partition.log.config
            if unsupported_zstd(row, config):
                _fail(row, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            elif version <= CONVERTED_UPTO and not config.message_downconversion_enable:
                _fail(row, ErrorCode.UNSUPPORTED_VERSION)

    def _convert(self, connection: Connection, header: RequestHeader, rows: list[Row]) -> None:
        """Down-convert in a thread, which reads the slices and decompresses, while the connection waits."""
        limits = [(row, row.wanted.max_bytes) for row in rows if row.length]
        connection.waiting = CONVERTING
        connection.hub.env.tasks.spawn(
            f"fetch conversion for {connection.peer}", self._converted(connection, header, rows, limits)
        )

    async def _converted(
        self, connection: Connection, header: RequestHeader, rows: list[Row], limits: list[tuple[Row, int]]
    ) -> None:
        version = header.api_version
        try:
            async with self._conversions:
                for row, max_bytes in limits:
                    data = await connection.hub.env.run_blocking(
                        to_old_format, row.data, row.wanted.fetch_offset, version, max_bytes
                    )
                    if isinstance(data, ErrorCode):
                        _fail(row, data)
                    else:
                        row.data, row.length = data, len(data)
                if not connection.closed:
                    self._send(connection, header, rows, ErrorCode.NONE, 0, [])
                    connection.flush()
        except BaseException:
            connection.shut()  # an answer is missing: nothing behind it may be answered
            raise
        finally:
            if not connection.closed:
                connection.resume()

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
        partition = self._context.replicas.wanted_partition(wanted)
        if (
            end - at > SHAPE_BYTES_MAX
            or not isinstance(partition, Partition)
            or not partition.is_leader
            or request.session_id != 0
            or request.session_epoch != NO_SESSION_EPOCH
            or request.forgotten_topics_data
            or params.replica_id >= 0
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


def _forgotten(version: int, request: m.FetchRequest) -> list[PartitionKey]:
    return [
        (topic.topic_id if version >= IDS_FROM else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]


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

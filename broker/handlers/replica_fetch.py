"""A follower's Fetch that goes on with its session, v15 and later: all but where it stands is known.

A follower asks again and again, and between its requests only the session's epoch and the partitions that it
has read change. So everything before that epoch, and what follows the partitions, is compared, the partitions
are read with one Struct each, and what they say goes into the watches of the session at once. Only what the
session watches already is served here; what adds, forgets or ends anything goes to the general way.

    ... session id | i32 session epoch | topics: id, partitions of 33 bytes | nothing forgotten, rack, tags

The shape holds for one generation of the hub, and for one session.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from broker.handlers.big_fetch import BigFetch
from broker.handlers.parked_fetch import ParkedFetch
from protocol import messages as m
from protocol.headers import RequestHeader
from replication.fetch_session import FetchSession, Watch
from replication.fetch_sessions import FetchContext, Kind
from replication.follower_fetch import FollowerFetch
from runtime.files import FileRegion

if TYPE_CHECKING:
    from broker.handlers.fetch import FetchHandler
    from broker.net.connection import Connection
    from broker.net.shape import Shape
    from replication.fetch import Answer, FetchParams, Row

STATE_FROM: Final = 15  # the replica's id and epoch stand behind the partitions
FIXED_BYTES: Final = 13  # of the body before the session's id
_I32 = struct.Struct(">i")
_PLACE = struct.Struct(">iiqiqiB")  # index, leader epoch, offset, last epoch, log start, max bytes, tags
_ID_BYTES = 16
_SMALL = 127  # lengths of one byte
ONE_WRITE_BYTES: Final = 128 << 10

Place = tuple[Watch, int, int, int, int, int]


class ReplicaFetchShape(ParkedFetch):
    """See the module. `before` are the bytes from 12 on up to the session's epoch, `after` those behind the
    partitions.
    """

    __slots__ = (
        "_after",
        "_broker_epoch",
        "_client_id",
        "_correlation_id",
        "_params",
        "_session",
        "_skip",
        "api",
        "before",
        "following",
    )

    promises = False

    def __init__(
        self,
        handler: FetchHandler,
        api: int,
        before: bytes,
        after: bytes,
        client_id: str | None,
        session: FetchSession,
        params: FetchParams,
        broker_epoch: int,
    ) -> None:
        self.api, self.before, self._after = api, before, after
        self.following: Shape = self
        self._skip = 12 + len(before)
        self._handler, self._client_id, self._session, self._params = handler, client_id, session, params
        self._broker_epoch = broker_epoch
        self._correlation_id = 0

    def serve(
        self, connection: Connection, buf: bytearray, at: int, end: int, correlation_id: int, own: bool
    ) -> bool | None:
        p = at + self._skip
        stop = end - len(self._after)
        session, reads = self._session, self._handler.reads
        if (
            stop < p + 5
            or not buf.startswith(self._after, stop)
            or _I32.unpack_from(buf, p)[0] != session.epoch
            or reads is None
            or reads.throttles
        ):
            return None
        places = self._places(buf, p + 4, stop)
        if places is None:
            return None
        if connection.in_turn:
            connection.hub.turn.flush()  # what this client wrote before, it sees now
        news = session.news
        for watch, leader_epoch, offset, last_epoch, log_start, max_bytes in places:
            watch.stands(offset, max_bytes, leader_epoch, last_epoch, log_start)
            news[watch] = None
        follower = FollowerFetch(session.replica_id, reads.now_ms(), self._broker_epoch)
        sessions = self._handler.sessions
        self._context = sessions.go_on(session, self._params, connection.hub.env.clock.now_ms())
        self._connection, self._correlation_id = connection, correlation_id
        if self._context.is_big:
            BigFetch(self._handler, connection, self._header()).answer(self._context, follower)
            return True
        answer = self._context.read(follower)
        follower.settle()
        if answer.ready:
            self._answer(answer)
        else:
            self.park()
        return True

    def _places(self, buf: bytearray, p: int, stop: int) -> list[Place] | None:
        """What buf[p:stop] says of each partition; None where the session does not watch all of them."""
        watches = self._session.watches
        unpack, size = _PLACE.unpack_from, _PLACE.size
        places: list[Place] = []
        topics = buf[p]
        p += 1
        if not 0 < topics <= _SMALL:
            return None
        for _ in range(topics - 1):
            if p + _ID_BYTES + 1 > stop:
                return None
            topic_id = bytes(buf[p : p + _ID_BYTES])
            p += _ID_BYTES
            count = buf[p] - 1
            p += 1
            if not 0 <= count < _SMALL or p + count * size >= stop:
                return None
            for _ in range(count):
                index, leader_epoch, offset, last_epoch, log_start, max_bytes, tags = unpack(buf, p)
                watch = watches.get((topic_id, index))
                if watch is None or tags or max_bytes < 0:
                    return None
                places.append((watch, leader_epoch, offset, last_epoch, log_start, max_bytes))
                p += size
            if buf[p]:
                return None
            p += 1
        return places if p == stop else None

    def _header(self) -> RequestHeader:
        return RequestHeader(self.api >> 16, self.api & 0xFFFF, self._correlation_id, self._client_id)

    def _answer(self, answer: Answer) -> None:
        for row in answer.rows:
            if type(row.data) is FileRegion and row.length <= ONE_WRITE_BYTES:
                _bring_in(row)
        self._handler.answer(self._connection, self._header(), self._context, answer)


def _bring_in(row: Row) -> None:
    """Have the newest records, which were just written, in memory.

    They leave in one write then, and wake the follower once. With sendfile there are three, of which the
    first brings a few bytes only.
    """
    region, watch = row.data, row.wanted
    assert type(region) is FileRegion
    assert type(watch) is Watch
    if watch.partition is not None:
        active = watch.partition.log.active
        if region.handle is active.handle and region.position + region.length == active.size:
            row.data = region.read()


def shape_of(
    handler: FetchHandler,
    header: RequestHeader,
    request: m.FetchRequest,
    context: FetchContext,
    frame: bytes,
    body: int,
) -> ReplicaFetchShape | None:
    """The shape of a follower's request that went on with its session; None where there is none.

    `frame` is the whole request, `body` is where its body begins in it.
    """
    version, session = header.api_version, context.session
    if version < STATE_FROM or context.kind is not Kind.INCREMENTAL or session is None:
        return None
    if request.forgotten_topics_data or context.params.throttle is not None:
        return None
    rest = m.FetchRequest(replica_state=request.replica_state)
    encoded = rest.encode(version)
    after = encoded[FIXED_BYTES + 9 :]  # the session's id and epoch, and no topics
    before = frame[12 : body + FIXED_BYTES + 4]
    if not frame.endswith(after) or frame[body + FIXED_BYTES : body + FIXED_BYTES + 4] != _I32.pack(
        request.session_id
    ):
        return None
    state = request.replica_state
    return ReplicaFetchShape(
        handler,
        header.api_key << 16 | version,
        before,
        after,
        header.client_id,
        session,
        context.params,
        state.replica_epoch,
    )

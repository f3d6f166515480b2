"""The incremental fetch sessions of a broker and the requests that use them (KIP-227).

A session remembers which partitions a client reads and what it was last told of each, so that requests and
answers name only what changed (replication.fetch_session). Here: which request begins, goes on with or ends
which session, who gets a slot when all are taken, and how a request is read, parked and answered.

A session is bound to no connection and no principal: whoever knows its random id and epoch may go on with it,
and permissions are checked at each request by the handler.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from enum import Enum

from protocol.errors import ErrorCode
from replication.fetch import Answer, FetchParams, Lookup, PartitionKey, Row, Wanted, read_all
from replication.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, FetchSession, read_news
from replication.follower_fetch import FollowerFetch
from replication.partition import Partition
from replication.waiting import Waiter
from runtime.entropy import Random

NO_SESSION = 0
MAX_EPOCH = (1 << 31) - 1
EVICTION_MS = 120_000
BIG = 2000
"""So many entries take 20 ms to look at."""
DEFAULT_SLOTS = 1000
WATCHES_MAX = 400_000
"""Entries in all sessions together: about 450 bytes each. Kafka bounds the sessions, but not their size."""


class Kind(Enum):
    """What a request does with sessions."""

    ERROR = "error"
    SESSIONLESS = "sessionless"
    FULL = "full"
    INCREMENTAL = "incremental"


class FetchContext:
    """One fetch request: read as often as it takes, then answered once with `respond`.

    Parking: `park` registers a waiter with everything that can bring news, `unpark` takes it away again. The
    waiter itself keeps the deadline (deadline_buckets).
    """

    __slots__ = ("_epoch", "_parked", "error", "kind", "listed", "params", "session", "sessions")

    def __init__(
        self,
        sessions: FetchSessions,
        kind: Kind,
        params: FetchParams,
        wanted: Sequence[Wanted] = (),
        session: FetchSession | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.sessions = sessions
        self.kind = kind
        self.params = params
        self.listed = wanted
        self.session = session
        self.error = error
        self._epoch = session.epoch if session is not None else INITIAL_EPOCH
        self._parked: list[Partition] = []

    def wanted(self) -> Iterable[Wanted]:
        """Every partition that this request may tell about: for permission checks by the handler."""
        return self.listed if self.session is None else self.session.watches.values()

    @property
    def is_big(self) -> bool:
        """Whether so much of the session is news that it should be read in pieces (replication.big_fetch)."""
        return self.session is not None and len(self.session.news) > BIG

    def overtaken(self) -> bool:
        """Whether another request has used the session since, or closed it."""
        return self.session is not None and self.session.epoch != self._epoch

    def read(self, follower: FollowerFetch | None = None) -> Answer:
        """Read what there is to tell now. Changes nothing that a client could notice.

        `follower`, at the first reading of a replica's request, takes note of what the request acknowledges.
        """
        session = self.session
        if self.kind is Kind.ERROR:
            return Answer([], 0, True)
        if session is None:
            return read_all(self.listed, self.sessions.lookup, self.params, follower)
        if session.epoch != self._epoch:
            return Answer([], 0, True)
        self.heard_of(follower)
        return read_news(session, self.sessions.lookup, self.params, follower)

    def heard_of(self, follower: FollowerFetch | None) -> None:
        """The request goes on with its session, which is a sign of life of the replica that sent it."""
        if follower is not None and self.session is not None:
            self.session.pulse.beat(follower.now_ms)
            self.session.take_up_again()
            follower.pulse = self.session.pulse

    def respond(self, answer: Answer, now_ms: int) -> tuple[ErrorCode, int, list[Row]]:
        """What to send: top-level error, session id, rows. Call it once, in the turn in which `answer` was
        read.
        """
        if self.kind is Kind.ERROR:
            return self.error, NO_SESSION, []
        if self.kind is Kind.SESSIONLESS:
            return ErrorCode.NONE, NO_SESSION, answer.rows
        if self.kind is Kind.FULL:
            session = self.sessions.create(self.params, answer.rows, now_ms)
            return ErrorCode.NONE, NO_SESSION if session is None else session.session_id, answer.rows
        session = self.session
        assert session is not None, "an incremental context has a session"
        if session.epoch != self._epoch:  # another request was answered from this session meanwhile
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION, []
        session.tell(answer.rows)
        return ErrorCode.NONE, session.session_id, answer.rows

    def park(self, waiter: Waiter) -> None:
        """Have `waiter.wake()` called when there may be more to read."""
        if self.session is not None:
            self.session.waiter = waiter
            return
        for wanted in self.listed:
            partition = self.sessions.lookup(wanted)
            if isinstance(partition, Partition):
                partition.waiters[waiter] = None
                self._parked.append(partition)

    def unpark(self, waiter: Waiter) -> None:
        """The request is woken, too late, or its connection is gone."""
        if self.session is not None and self.session.waiter is waiter:
            self.session.waiter = None
        for partition in self._parked:
            partition.waiters.pop(waiter, None)
        self._parked.clear()


class FetchSessions:
    """The cache of all sessions of a broker, bounded by `slots`."""

    def __init__(self, lookup: Lookup, random: Random, slots: int = DEFAULT_SLOTS) -> None:
        self.lookup = lookup
        self.slots = slots
        self.evictions = 0
        self.watched = 0
        self._random = random
        self._sessions: dict[int, FetchSession] = {}  # in the order of their last use
        self._evictable: list[tuple[bool, int, int]] = []  # keys of those older than EVICTION_MS, ascending
        self._consumers: list[tuple[bool, int, int]] = []  # keys of all that do not belong to followers

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def open(
        self,
        params: FetchParams,
        session_id: int,
        epoch: int,
        wanted: Sequence[Wanted],
        forgotten: Iterable[PartitionKey],
        now_ms: int,
    ) -> FetchContext:
        """Begin a request. Versions below 7 pass session id 0 and epoch -1."""
        context = self.begin(params, session_id, epoch, wanted)
        if context.session is None:
            return context
        self.update(context.session, wanted, forgotten)
        return self.updated(context, wanted, now_ms)

    def begin(
        self, params: FetchParams, session_id: int, epoch: int, wanted: Sequence[Wanted]
    ) -> FetchContext:
        """The first step of `open`. Where the context has a session it takes `update`, as often as one
        likes, and `updated`.
        """
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self.close(session_id)
            kind = Kind.FULL if epoch == INITIAL_EPOCH else Kind.SESSIONLESS
            return FetchContext(self, kind, params, wanted)
        session = self._sessions.get(session_id)
        if session is None:
            return FetchContext(self, Kind.ERROR, params, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext(self, Kind.ERROR, params, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_ids != params.uses_ids:
            return FetchContext(self, Kind.ERROR, params, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if self.watched + len(wanted) > WATCHES_MAX:
            self.close(session_id)
            return FetchContext(self, Kind.ERROR, params, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        return FetchContext(self, Kind.INCREMENTAL, params, session=session)

    def go_on(self, session: FetchSession, params: FetchParams, now_ms: int) -> FetchContext:
        """As `open` for a request that has the session's epoch and changes none of what it watches."""
        session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        self._touch(session, now_ms)
        return FetchContext(self, Kind.INCREMENTAL, params, session=session)

    def updated(self, context: FetchContext, wanted: Sequence[Wanted], now_ms: int) -> FetchContext:
        """The last step of `open`: what the request reads."""
        session = context.session
        assert session is not None, "only sessions are updated"
        if not session.watches:
            self.close(session.session_id)
            return FetchContext(self, Kind.SESSIONLESS, context.params, wanted)
        self._touch(session, now_ms)
        return context

    def create(self, params: FetchParams, rows: Sequence[Row], now_ms: int) -> FetchSession | None:
        """A session that has told these rows; None when no slot is free and none may be taken."""
        if not self.has_room_for(params, len(rows), now_ms):
            return None
        session = self.new(params, now_ms)
        session.tell_first(rows)
        self.admit(session, now_ms)
        return session

    def has_room_for(self, params: FetchParams, size: int, now_ms: int) -> bool:
        """Whether a session of so many partitions may come, for which another one may have to go."""
        if not size or self.watched + size > WATCHES_MAX:
            return False
        return len(self._sessions) < self.slots or self._evict_for(params.replica_id >= 0, size, now_ms)

    def new(self, params: FetchParams, now_ms: int) -> FetchSession:
        """A session that nobody knows of before `admit`."""
        session_id = self._random.integer(1, MAX_EPOCH)
        return FetchSession(session_id, params.uses_ids, params.replica_id, now_ms)

    def admit(self, session: FetchSession, now_ms: int) -> None:
        """Keep a new session, in the turn in which there was room for it."""
        if session.follower:
            self._drop_idle(session.replica_id, now_ms)
        while session.session_id in self._sessions:
            session.session_id = self._random.integer(1, MAX_EPOCH)
        self.watched += len(session.watches)
        self._sessions[session.session_id] = session
        self._touch(session, now_ms)

    def _drop_idle(self, replica_id: int, now_ms: int) -> None:
        """What a follower left behind when leaderships moved would be fed by every append until its slot is
        needed. One that follows comes at least every replica.fetch.wait.max.ms.
        """
        idle: list[int] = []
        for session in self._sessions.values():
            if now_ms - session.used_ms <= EVICTION_MS:
                break
            if session.replica_id == replica_id:
                idle.append(session.session_id)
        for session_id in idle:
            self.close(session_id)

    def close(self, session_id: int) -> None:
        """End a session; an unknown id is no error."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.watched -= len(session.watches)
            self._unlist(session)
            session.close()

    def update(
        self, session: FetchSession, wanted: Iterable[Wanted], forgotten: Iterable[PartitionKey]
    ) -> None:
        """What a request changes of the partitions that its session watches, or a part of it."""
        before = len(session.watches)
        for entry in wanted:
            watch = session.watches.get(entry.key)
            if watch is None:
                session.add(entry)
            else:
                watch.update(entry)
                session.news[watch] = None
        for key in forgotten:
            session.remove(key)
        self.watched += len(session.watches) - before

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        """The session was used: it is the last to be evicted for idleness, and its place by size is put
        right.
        """
        session.used_ms = now_ms
        del self._sessions[session.session_id]
        self._sessions[session.session_id] = session
        aged = now_ms - session.created_ms > EVICTION_MS
        key = (session.follower, len(session.watches), session.session_id)
        if session.key == key and not aged:
            return
        self._unlist(session)
        session.key = key
        if aged:
            insort(self._evictable, key)
        if not session.follower or aged:
            insort(self._consumers, key)

    def _unlist(self, session: FetchSession) -> None:
        for keys in (self._evictable, self._consumers):
            at = bisect_left(keys, session.key) if session.key is not None else len(keys)
            if at < len(keys) and keys[at] == session.key:
                del keys[at]
        session.key = None

    def _evict_for(self, follower: bool, size: int, now_ms: int) -> bool:
        """Free a slot for a session of `size` partitions: the longest unused one if it is idle for more
        than EVICTION_MS; else the smallest that a follower may push out (any consumer's, or one older than
        EVICTION_MS), or a consumer (only one older than that), if the newcomer is of a higher kind or larger.
        """
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.used_ms > EVICTION_MS:
            victim = oldest.session_id
        else:
            keys = self._consumers if follower else self._evictable
            if not keys or (follower, size, 0) < keys[0]:
                return False
            victim = keys[0][2]
        self.evictions += 1
        self.close(victim)
        return True

"""Incremental fetch sessions (KIP-227).

A session remembers which partitions a client reads and what it was last told of each, so that requests and
answers name only what changed. Kafka walks all partitions of a session at each fetch; here a session keeps
the set of those with news, which appends, role and log start changes feed (replication.partition), so an
incremental fetch costs what there is to tell and not what is watched.

What stays in `news`: an entry that the client changed, whose records did not fit or were just sent (the
client moves its offset only with its next request), that ended in an error, or that an append touched. What
leaves it: an entry that was looked at and had nothing to tell. Entries are looked at in the session's order,
in which those that returned records go to the end; `Watch.order` holds that order as a number, so that
sorting the news costs what is in them.

A session is bound to no connection and no principal: whoever knows its random id and epoch may go on with it,
and permissions are checked at each request by the handler.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from enum import Enum
from operator import attrgetter

from protocol.errors import ErrorCode
from replication.epoch_fence import storage_error_at
from replication.fetch import (
    ABSENT,
    Answer,
    Budget,
    FetchParams,
    Lookup,
    PartitionKey,
    Row,
    Wanted,
    read_all,
    read_row,
)
from replication.partition import Partition, Waiter
from runtime.entropy import Random

INITIAL_EPOCH, FINAL_EPOCH, NO_SESSION = 0, -1, 0
MAX_EPOCH = (1 << 31) - 1
EVICTION_MS = 120_000
DEFAULT_SLOTS = 1000
WATCHES_MAX = 1_000_000
"""Entries in all sessions together: about 250 bytes each. Kafka bounds the sessions, but not their size."""

_BY_ORDER = attrgetter("order")


class Watch(Wanted):
    """A partition as one session sees it. `told_*` is what the client knows; -1 makes the next success be
    sent.
    """

    __slots__ = ("order", "partition", "session", "told_high_watermark", "told_log_start")

    def __init__(self, session: FetchSession, wanted: Wanted) -> None:
        super().__init__(
            wanted.topic,
            wanted.topic_id,
            wanted.index,
            wanted.fetch_offset,
            wanted.max_bytes,
            wanted.leader_epoch,
            wanted.last_fetched_epoch,
            wanted.log_start_offset,
        )
        self.session = session
        self.partition: Partition | None = None
        self.order = 0
        self.told_high_watermark = -1
        self.told_log_start = -1

    def update(self, wanted: Wanted) -> None:
        """The client asked for something else; its place in the order stays."""
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.max_bytes
        self.leader_epoch = wanted.leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset

    def must_tell(self, row: Row) -> bool:
        """Whether an incremental answer has to list this row."""
        return (
            row.length > 0
            or row.urgent
            or row.high_watermark != self.told_high_watermark
            or row.log_start_offset != self.told_log_start
        )

    def told(self, row: Row) -> None:
        """The row was sent. After an error, and after a divergence, the next success is always sent."""
        if row.error != ErrorCode.NONE or row.diverging is not None:
            self.told_high_watermark = -1
        else:
            self.told_high_watermark = row.high_watermark
        self.told_log_start = row.log_start_offset

    def unlink(self) -> None:
        """No appends feed this entry any more."""
        if self.partition is not None:
            self.partition.watches.pop(self, None)
            self.partition = None


class FetchSession:
    """One session. `epoch` is the epoch that the next request must have; `waiter` the request that is parked
    on it.
    """

    __slots__ = (
        "_next_order",
        "created_ms",
        "epoch",
        "follower",
        "key",
        "news",
        "session_id",
        "used_ms",
        "uses_ids",
        "waiter",
        "watches",
    )

    def __init__(self, session_id: int, uses_ids: bool, follower: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        self.follower = follower
        self.created_ms = self.used_ms = now_ms
        self.epoch = INITIAL_EPOCH + 1
        self.watches: dict[PartitionKey, Watch] = {}
        self.news: dict[Watch, None] = {}
        self.waiter: Waiter | None = None
        self.key: tuple[bool, int, int] | None = None  # among those that may be evicted
        self._next_order = 0

    def add(self, wanted: Wanted) -> Watch:
        """Watch one partition more, at the end of the order."""
        watch = Watch(self, wanted)
        self.watches[watch.key] = watch
        self.move_to_end(watch)
        self.news[watch] = None
        return watch

    def move_to_end(self, watch: Watch) -> None:
        watch.order = self._next_order
        self._next_order += 1

    def remove(self, key: PartitionKey) -> None:
        watch = self.watches.pop(key, None)
        if watch is not None:
            watch.unlink()
            self.news.pop(watch, None)

    def close(self) -> None:
        """Nothing feeds this session any more; a request that is parked on it is woken and finds it gone."""
        for watch in self.watches.values():
            watch.unlink()
        self.watches, self.news, self.epoch = {}, {}, FINAL_EPOCH
        if self.waiter is not None:
            self.waiter.wake()


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

    __slots__ = ("_cache", "_epoch", "_parked", "_wanted", "error", "kind", "params", "session")

    def __init__(
        self,
        cache: FetchSessions,
        kind: Kind,
        params: FetchParams,
        wanted: Sequence[Wanted] = (),
        session: FetchSession | None = None,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self._cache = cache
        self.kind = kind
        self.params = params
        self._wanted = wanted
        self.session = session
        self.error = error
        self._epoch = session.epoch if session is not None else INITIAL_EPOCH
        self._parked: list[Partition] = []

    def wanted(self) -> Iterable[Wanted]:
        """Every partition that this request may tell about: for permission checks by the handler."""
        return self._wanted if self.session is None else self.session.watches.values()

    def read(self) -> Answer:
        """Read what there is to tell now. Changes nothing that a client could notice."""
        if self.kind is Kind.ERROR:
            return Answer([], 0, True)
        if self.session is None:
            return read_all(self._wanted, self._cache.lookup, self.params)
        if self.session.epoch != self._epoch:
            return Answer([], 0, True)
        return read_news(self.session, self._cache.lookup, self.params)

    def respond(self, answer: Answer, now_ms: int) -> tuple[ErrorCode, int, list[Row]]:
        """What to send: top-level error, session id, rows. Call it once, in the turn in which `answer` was
        read.
        """
        if self.kind is Kind.ERROR:
            return self.error, NO_SESSION, []
        if self.kind is Kind.SESSIONLESS:
            return ErrorCode.NONE, NO_SESSION, answer.rows
        if self.kind is Kind.FULL:
            session = self._cache.create(self.params, answer.rows, now_ms)
            return ErrorCode.NONE, NO_SESSION if session is None else session.session_id, answer.rows
        session = self.session
        assert session is not None, "an incremental context has a session"
        if session.epoch != self._epoch:  # another request was answered from this session meanwhile
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, NO_SESSION, []
        for row in answer.rows:
            watch = row.wanted
            assert isinstance(watch, Watch), "rows of a session are its watches"
            watch.told(row)
            if row.length:
                session.move_to_end(watch)
        return ErrorCode.NONE, session.session_id, answer.rows

    def respond_throttled(self) -> tuple[ErrorCode, int]:
        """Over quota: an empty answer. An incremental session keeps its id, its epoch has moved on."""
        if self.kind is Kind.ERROR:
            return self.error, NO_SESSION
        return ErrorCode.NONE, self.session.session_id if self.session is not None else NO_SESSION

    def park(self, waiter: Waiter) -> None:
        """Have `waiter.wake()` called when there may be more to read."""
        if self.session is not None:
            self.session.waiter = waiter
            return
        for wanted in self._wanted:
            partition = self._cache.lookup(wanted)
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


def read_news(session: FetchSession, lookup: Lookup, params: FetchParams) -> Answer:
    """Look at the entries with news, in the order of the session, until the budget is used up.

    Entries behind that point keep their news for the next fetch, as do those with records or errors."""
    budget = Budget(params)
    rows: list[Row] = []
    ready = params.max_wait_ms <= 0
    absent = 0
    news = session.news
    looked_at = sorted(news, key=_BY_ORDER) if len(news) > 1 else list(news)
    for watch in looked_at:
        if budget.exhausted:
            break
        partition = watch.partition
        if partition is None:
            found = lookup(watch)
            if isinstance(found, Partition):
                partition = watch.partition = found
                found.watches[watch] = None
            else:
                row = Row(watch, storage_error_at(found, params.version))
                rows.append(row)
                if row.error in ABSENT:
                    absent += 1
                else:
                    ready = True
                continue
        row = read_row(watch, partition, params, budget)
        if watch.must_tell(row):
            rows.append(row)
            ready = ready or row.urgent
        elif not row.cut_off:
            del news[watch]
    if len(news) * 2 < len(looked_at):
        session.news = dict(news)  # a dict that lost its entries is walked at its old size: 1 us for 1,000
    return Answer(rows, budget.taken, ready or absent == len(session.watches) or budget.satisfies(params))


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
        self._update(session, wanted, forgotten)
        if not session.watches:
            self.close(session_id)
            return FetchContext(self, Kind.SESSIONLESS, params, wanted)
        session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        self._touch(session, now_ms)
        return FetchContext(self, Kind.INCREMENTAL, params, session=session)

    def create(self, params: FetchParams, rows: Sequence[Row], now_ms: int) -> FetchSession | None:
        """A session that has told these rows; None when no slot is free and none may be taken."""
        follower = params.replica_id >= 0
        if not rows or self.watched + len(rows) > WATCHES_MAX:
            return None
        if len(self._sessions) >= self.slots and not self._evict_for(follower, len(rows), now_ms):
            return None
        session_id = self._random.integer(1, MAX_EPOCH)
        while session_id in self._sessions:
            session_id = self._random.integer(1, MAX_EPOCH)
        session = FetchSession(session_id, params.uses_ids, follower, now_ms)
        for row in rows:
            session.add(row.wanted).told(row)
        self.watched += len(session.watches)
        self._sessions[session_id] = session
        self._touch(session, now_ms)
        return session

    def close(self, session_id: int) -> None:
        """End a session; an unknown id is no error."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.watched -= len(session.watches)
            self._unlist(session)
            session.close()

    def _update(
        self, session: FetchSession, wanted: Iterable[Wanted], forgotten: Iterable[PartitionKey]
    ) -> None:
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

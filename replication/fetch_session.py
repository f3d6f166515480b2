"""One incremental fetch session: the partitions it watches, what the client was told, and what is news
(KIP-227).

Kafka walks all partitions of a session at each fetch; here a session keeps the set of those with news, which
appends, role and log start changes feed (replication.partition), so that an incremental fetch costs what
there is to tell and not what is watched.

What stays in `news`: an entry that the client changed, whose records did not fit or were just sent (the
client moves its offset only with its next request), that ended in an error, or that an append touched. What
leaves it: an entry that was looked at and had nothing to tell. Entries are looked at in the session's order,
in which those that returned records go to the end; `Watch.order` holds that order as a number, so that
sorting the news costs what is in them.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    read_row,
)
from replication.follower import Pulse
from replication.follower_fetch import FollowerFetch
from replication.partition import Partition
from replication.waiting import Waiter

INITIAL_EPOCH, FINAL_EPOCH = 0, -1

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
        """The client asked for something else; its place in the order stays.

        Under another leader epoch it may have heard of other marks elsewhere in between.
        """
        self.stands(
            wanted.fetch_offset,
            wanted.max_bytes,
            wanted.leader_epoch,
            wanted.last_fetched_epoch,
            wanted.log_start_offset,
        )

    def stands(
        self, fetch_offset: int, max_bytes: int, leader_epoch: int, last_epoch: int, log_start_offset: int
    ) -> None:
        """As `update`, by the values."""
        if leader_epoch != self.leader_epoch:
            self.told_high_watermark = -1
        self.fetch_offset, self.max_bytes, self.leader_epoch = fetch_offset, max_bytes, leader_epoch
        self.last_fetched_epoch, self.log_start_offset = last_epoch, log_start_offset

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
            if self.session.replica_id >= 0 and self.partition.leadership is not None:
                self.partition.leadership.left(self.session.replica_id)
            self.partition.watches.pop(self, None)
            self.partition = None


class FetchSession:
    """One session. `epoch` is the epoch that the next request must have; `waiter` the request that is parked
    on it. `replica_id` is the follower's that began it, -1 for a consumer.
    """

    __slots__ = (
        "_next_order",
        "again",
        "created_ms",
        "epoch",
        "follower",
        "key",
        "news",
        "pulse",
        "replica_id",
        "session_id",
        "used_ms",
        "uses_ids",
        "waiter",
        "watches",
    )

    def __init__(self, session_id: int, uses_ids: bool, replica_id: int, now_ms: int) -> None:
        self.session_id = session_id
        self.uses_ids = uses_ids
        self.replica_id = replica_id
        self.follower = replica_id >= 0
        self.pulse = Pulse()
        self.created_ms = self.used_ms = now_ms
        self.epoch = INITIAL_EPOCH + 1
        self.watches: dict[PartitionKey, Watch] = {}
        self.news: dict[Watch, None] = {}
        self.again: dict[Watch, None] = {}  # that the next request of a follower is read for, news or not
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

    def tell_first(self, rows: Iterable[Row]) -> None:
        """Watch the partitions of these rows, which are sent."""
        for row in rows:
            self.add(row.wanted).told(row)

    def tell(self, rows: Iterable[Row]) -> None:
        """These rows, which are about watches of this session, are sent."""
        for row in rows:
            watch = row.wanted
            assert isinstance(watch, Watch), "rows of a session are its watches"
            watch.told(row)
            if row.length:
                self.move_to_end(watch)

    def looked_at(self) -> list[Watch]:
        """The entries with news, in their order."""
        news = self.news
        return sorted(news, key=_BY_ORDER) if len(news) > 1 else list(news)

    def trim(self, looked_at: int) -> None:
        """A dict that lost its entries is walked at its old size: 1 us for 1,000."""
        if len(self.news) * 2 < looked_at:
            self.news = dict(self.news)

    def move_to_end(self, watch: Watch) -> None:
        watch.order = self._next_order
        self._next_order += 1

    def remove(self, key: PartitionKey) -> None:
        watch = self.watches.pop(key, None)
        if watch is not None:
            watch.unlink()
            self.news.pop(watch, None)
            self.again.pop(watch, None)

    def take_up_again(self) -> None:
        """A request has come: what was to be looked at by it counts as news."""
        if self.again:
            self.news.update(self.again)
            self.again = {}

    def close(self) -> None:
        """Nothing feeds this session any more; a request that is parked on it is woken and finds it gone."""
        for watch in self.watches.values():
            watch.unlink()
        self.watches, self.news, self.again, self.epoch = {}, {}, {}, FINAL_EPOCH
        if self.waiter is not None:
            self.waiter.wake()


def read_news(
    session: FetchSession, lookup: Lookup, params: FetchParams, follower: FollowerFetch | None = None
) -> Answer:
    """Look at the entries with news, in the order of the session, until the budget is used up.

    Entries behind that point keep their news for the next fetch, as do those with records or errors. For
    entries without news a follower's request says that it still has all there is: its pulse does.
    """
    budget = Budget(params)
    rows: list[Row] = []
    looked_at = session.looked_at()
    urgent, absent = read_some_news(session, looked_at, lookup, params, budget, rows, follower)
    session.trim(len(looked_at))
    ready = urgent or params.max_wait_ms <= 0 or absent == len(session.watches) or budget.satisfies(params)
    return Answer(rows, budget.taken, ready)


def read_some_news(
    session: FetchSession,
    looked_at: Iterable[Watch],
    lookup: Lookup,
    params: FetchParams,
    budget: Budget,
    rows: list[Row],
    follower: FollowerFetch | None = None,
) -> tuple[bool, int]:
    """Look at these entries and add rows for those that have something to tell. Whether one of them may not
    wait, and how many the cluster does not know.
    """
    urgent, absent = False, 0
    news = session.news
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
                    urgent = True
                continue
        row = read_row(watch, partition, params, budget)
        if watch.must_tell(row):
            rows.append(row)
            urgent = urgent or row.urgent
        elif not row.cut_off:
            news.pop(watch, None)
        if follower is not None:
            follower.seen(partition, row, partition.log.end_offset)
    return urgent, absent

"""A fetcher: one task that copies some partitions from one leader.

A round: build a fetch of what may be fetched now, ask, apply the rows, ask again. One request is in flight,
and a row counts only if its partition is where the leader was told that it is: same leader epoch, same
offset, not held back. What goes wrong with one partition leaves the others alone. A round costs what is in it
and not what is followed.

A partition that the leader refuses is mostly one whose leader hears of its role a moment later than we: it is
asked for again after 20 ms, then after twice as long each time, up to replica.fetch.backoff.ms. Kafka waits
so long from the first time on, and with it all who wait for acks=all.

A request waits at the leader for up to max_wait_ms. A partition that is added meanwhile would wait as long,
and everybody whose acks=all needs this follower with it, so after a moment such a request is given up and
sent again with the new partition. Kafka waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import Channel, ChannelLost
from replication.cluster.followed import Followed, Outcome
from replication.cluster.follower_session import FollowerSession, Identity, Key
from replication.cluster.offset_lookup import OffsetLookup
from replication.cluster.throttle import ReplicationQuota
from replication.partition import Partition
from replication.purgatory import Timer
from runtime.pieces import Steps
from storage.append import NOT_HELD
from storage.errors import StorageError, StorageFailed

HURRY_MS = 10
FIRST_PAUSE_MS = 20
ROWS_AT_ONCE = 25  # of up to 0.2 ms each, before others get the loop; the first append to a log takes 1 ms
ROW_BYTES = 64 << 10  # so many bytes count as a row more

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class FetcherSettings:
    """Of all fetchers of a broker. `fetchers_per_leader` is how many there are at the start."""

    identity: Identity
    backoff_ms: int = 1000
    fetchers_per_leader: int = 1
    list_offsets_version: int = 9


@dataclass(slots=True, frozen=True)
class World:
    """What fetchers share. `now_ms` is monotonic, `wall_ms` the wall clock, which segments count by."""

    now_ms: Callable[[], int]
    wall_ms: Callable[[], int]
    broker_epoch: Callable[[], int]
    timer: Timer
    throttle: ReplicationQuota


@dataclass(slots=True, frozen=True)
class _Waiting:
    """For the sync of a log; one that failed has told the log's directory."""

    told: asyncio.Future[None]

    def synced(self, error: StorageFailed | None) -> None:
        if not self.told.done():
            self.told.set_result(None)


class Fetcher:
    """See the module. `add`, `remove`, `build` and `take` are what a round consists of; `run` drives it."""

    def __init__(self, leader_id: int, channel: Channel, settings: FetcherSettings, world: World) -> None:
        self.leader_id = leader_id
        self._channel = channel
        self._settings = settings
        self._world = world
        self._session = FollowerSession(settings.identity)
        self._lookup = OffsetLookup(channel, settings.identity.broker_id, settings.list_offsets_version)
        self._partitions: dict[Key, Followed] = {}
        self._changed: dict[Key, None] = {}  # to be looked at for the next request
        self._gone: dict[Key, None] = {}  # to be taken out of the session
        self._delayed: dict[Key, None] = {}
        self._names: dict[bytes, str] = {}
        self._unsynced: dict[Partition, None] = {}  # with records that have to be synced first
        self._flying: m.FetchRequest | None = None
        self._hurrying = self._given_up = False
        self._woken = asyncio.Event()
        self._stopped = False
        self.failed: dict[Key, None] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def get(self, key: Key) -> Followed | None:
        """The partition's state, if this fetcher has it."""
        return self._partitions.get(key)

    def add(self, partition: Partition) -> None:
        """Fetch the partition under its present leader epoch; what was known of it before is void."""
        followed = Followed(partition)
        key = followed.key
        self.failed.pop(key, None)
        try:
            followed.prepare(self._world.wall_ms())
        except StorageError as error:
            _log.error("%s is not fetched: %s", followed, error)
            self.remove(key)
            self.failed[key] = None
            return
        self._partitions[key] = followed
        self._names[partition.topic_id] = partition.topic
        self._gone.pop(key, None)
        self._delayed.pop(key, None)
        self._changed[key] = None
        self._woken.set()
        if self._flying is not None and not self._hurrying:
            self._hurrying = True
            waiting = self._flying
            self._world.timer.add(HURRY_MS, lambda: self._hurry(waiting))

    def _hurry(self, waiting: m.FetchRequest) -> None:
        self._hurrying = False
        if self._flying is waiting and self._changed:
            self._given_up = True
            self._channel.abort()

    def remove(self, key: Key) -> None:
        """Fetch it no more."""
        if self._partitions.pop(key, None) is not None:
            self._changed.pop(key, None)
            self._delayed.pop(key, None)
            self._gone[key] = None

    # A round

    def build(self) -> m.FetchRequest | None:
        """The next request; None while there is nothing that may be fetched."""
        now_ms = self._world.now_ms()
        for key in list(self._delayed):
            followed = self._partitions[key]
            if followed.delayed_until_ms <= now_ms:
                followed.delayed_until_ms = 0
                del self._delayed[key]
                self._changed[key] = None
        held = self._held(now_ms) if self._world.throttle.active else {}
        if len(self._partitions) == len(self._delayed) + len(held):
            return None
        names = self._partitions if self._session.is_full else self._changed
        changed = [self._partitions[key] for key in names if key not in self._delayed and key not in held]
        gone = {**self._gone, **self._delayed, **held}
        self._flying = self._session.request(changed, gone, self._world.broker_epoch())
        self._changed, self._gone = dict(held), {}
        return self._flying

    def _held(self, now_ms: int) -> dict[Key, None]:
        """Partitions that the quota holds back."""
        holds = self._world.throttle.holds
        return {
            key: None
            for key, each in self._partitions.items()
            if key not in self._delayed and holds(each.partition, each.in_sync, now_ms)
        }

    def take(self, response: m.FetchResponse) -> Steps[list[Followed]]:
        """Apply an answer, in pieces; the partitions whose offset the leader does not have.

        Between the pieces roles may change: each row is compared with what holds when its turn comes.
        """
        self._flying = None
        if not self._session.answered(response):
            if response.error_code not in _SESSION_ERRORS:
                self._back_off_all()
            return []
        lost: list[Followed] = []
        left = ROWS_AT_ONCE
        for topic in response.responses:
            name = topic.topic or self._names.get(topic.topic_id, "")
            for row in topic.partitions:
                if left <= 0:
                    yield
                    left = ROWS_AT_ONCE
                left -= 1 + len(row.records or b"") // ROW_BYTES
                followed = self._partitions.get((name, row.partition_index))
                if followed is not None and followed.awaits_answer:
                    self._apply(followed, row, lost)
        return lost

    def _apply(self, followed: Followed, row: m.FetchResponse.PartitionData, lost: list[Followed]) -> None:
        outcome = followed.take(row, self._world.wall_ms())
        if followed.partition.log.hold_from != NOT_HELD:
            self._unsynced[followed.partition] = None
        if row.records and self._world.throttle.active:
            self._world.throttle.record(followed.partition, len(row.records), self._world.now_ms())
        if outcome is Outcome.OUT_OF_RANGE:
            lost.append(followed)
            return
        self._act(followed, outcome)
        if row.records and outcome is Outcome.GO_ON:  # to the end: nobody starves
            self._partitions[followed.key] = self._partitions.pop(followed.key)

    def _act(self, followed: Followed, outcome: Outcome) -> None:
        key = followed.key
        if outcome is Outcome.GO_ON:
            followed.pause_ms = 0
            self._changed[key] = None
        elif outcome is Outcome.FAILED:
            self.remove(key)
            self.failed[key] = None
        else:
            followed.pause_ms = max(2 * followed.pause_ms, FIRST_PAUSE_MS)
            self._back_off(followed, min(followed.pause_ms, self._settings.backoff_ms))

    def _back_off(self, followed: Followed, pause_ms: int) -> None:
        followed.delayed_until_ms = self._world.now_ms() + pause_ms
        self._changed.pop(followed.key, None)
        self._delayed[followed.key] = None

    def _back_off_all(self) -> None:
        for followed in self._partitions.values():
            if not followed.delayed_until_ms:
                self._back_off(followed, self._settings.backoff_ms)

    def lost(self) -> None:
        """There was no answer: all that was asked for waits a while, unless the request was given up."""
        self._flying = None
        self._session.begin_anew()
        if self._given_up:
            self._given_up = False
        else:
            self._back_off_all()

    # The task

    async def run(self) -> None:
        """Round after round, until stopped."""
        while not self._stopped:
            request = self.build()
            if request is None:
                await self._idle()
                continue
            try:
                response = await self._channel.ask(request, self._settings.identity.version)
            except ChannelLost as lost:
                _log.info("Fetching from broker %d: %s", self.leader_id, lost)
                self.lost()
                continue
            out_of_range = await self._taken(response)
            await self._synced()
            await self.find_offsets(out_of_range)

    async def _synced(self) -> None:
        """Until all is on the disk that flush.messages wants there: the next request acknowledges it."""
        held, self._unsynced = self._unsynced, {}
        for partition in held:
            if partition.gate is not None and partition.log.hold_from != NOT_HELD:
                waiting = _Waiting(asyncio.get_running_loop().create_future())
                partition.gate.hold(waiting)
                await waiting.told

    async def _taken(self, response: m.FetchResponse) -> list[Followed]:
        steps = self.take(response)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                lost: list[Followed] = end.value
                return lost
            await asyncio.sleep(0)

    def stop(self) -> None:
        """End after the answer that is awaited now, which changes nothing any more."""
        self._stopped = True
        self._partitions.clear()
        self._delayed.clear()
        self._woken.set()

    async def find_offsets(self, lost: list[Followed]) -> None:
        """Ask the leader where its logs end and begin, and go on from there."""
        for followed in lost:
            outcome = await self._lookup.settle(followed, self._is_current, self._world.wall_ms)
            if self._is_current(followed):
                self._act(followed, outcome)

    def _is_current(self, followed: Followed) -> bool:
        """Whether the partition is still followed as it was when this object was made."""
        return self._partitions.get(followed.key) is followed

    async def _idle(self) -> None:
        """Until a partition is added or the back-off of one is over."""
        self._woken.clear()
        now_ms = self._world.now_ms()
        due = [self._partitions[key].delayed_until_ms for key in self._delayed]
        wait_ms = min(due) - now_ms if due else None
        if self._world.throttle.active:
            wait_ms = min(wait_ms or self._settings.backoff_ms, self._settings.backoff_ms)
        try:
            async with asyncio.timeout(None if wait_ms is None else max(wait_ms, 1) / 1000):
                await self._woken.wait()
        except TimeoutError:
            pass


_SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""After these the next, full request may go at once."""

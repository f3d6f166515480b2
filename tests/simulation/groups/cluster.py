"""Brokers with the real coordinator of groups over one simulated log, and who of them leads what.

A broker that crashes takes its timers and unanswered requests along; its clients see their connections end.
News of a new leadership reaches each broker in order, the resigning one sometimes late, so that it serves on
for a while and its appends are refused.

Every request is counted: a second answer fails the run at once, a missing one when the broker closes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from coordinator.group.manager import GroupManager
from coordinator.group.shard import ShardSettings
from coordinator.placement import partition_for
from coordinator.result import CoordinatorError
from coordinator.runtime import Context, CoordinatorRuntime, State
from protocol.errors import ErrorCode
from protocol.records.rules import Checked
from runtime.entropy import SeededRandom
from tests.simulation.groups.log import SimulatedLog
from tests.simulation.groups.replayed import WatchedShard
from tests.simulation.virtual_time import Answer, Scheduler

RETENTION_MS = 60_000
GONE = ErrorCode.NETWORK_EXCEPTION
"""What a client makes of a connection that ended before the answer."""
NO_VIEW = -1
Tell = Callable[[Any], None]
Ask = Callable[["Broker", Tell], None]
"""Hands a request to a broker; the answer is told once. It may raise CoordinatorError instead."""


class Ended(Exception):
    """A process is no more."""


class Reply:
    """What came back: a response, or an ErrorCode; when it was handled, and from which view of the log."""

    __slots__ = ("handled_ms", "told", "view")

    def __init__(self, told: Any, handled_ms: int, view: int) -> None:
        self.told, self.handled_ms, self.view = told, handled_ms, view


class Broker:
    """One life of a broker: made at its start, `alive` until it crashes."""

    def __init__(self, cluster: Cluster, life: int) -> None:
        self.cluster, self.life, self.alive = cluster, life, True
        self.waiting: dict[int, Answer] = {}
        self._views: dict[int, int] = {}
        self._asked = 0
        scheduler = cluster.scheduler
        self.runtime: CoordinatorRuntime[Any] = CoordinatorRuntime(
            "__consumer_offsets", self, cluster.log, scheduler, self, self, self._make_shard
        )
        self.manager = GroupManager(self.runtime, scheduler, self, RETENTION_MS)
        self.runtime.start(cluster.partition_count)

    def _make_shard(self, context: Context) -> WatchedShard:
        self._views[context.partition] = self.cluster.next_view()
        return self.cluster.make_shard(context, self.life)

    # -- the ports of a coordinator

    def append(
        self,
        partition: int,
        batch: Checked,
        epoch: int,
        done: Callable[[ErrorCode], None],
        guard: object | None = None,
        transaction_version: int = 0,
    ) -> int:
        return self.cluster.log.append(partition, batch, epoch, done, lambda: self.alive)

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        return self.cluster.scheduler.add(delay_ms, lambda: callback() if self.alive else None)

    def spawn(self, name: str, coroutine: Any) -> None:
        self.cluster.scheduler.spawn(coroutine)

    # -- requests

    def receive(self, group: str, ask: Ask, answer: Answer) -> None:
        """Take a request; `answer` gets a Reply."""
        number = self._asked = self._asked + 1
        handled_ms = self.cluster.scheduler.now_ms()
        self.waiting[number] = answer

        def tell(told: Any) -> None:
            if not self.alive:
                return
            assert number in self.waiting, f"a request was answered twice, now with {told}"
            del self.waiting[number]
            answer.set(Reply(told, handled_ms, self._view(group)))

        try:
            ask(self, tell)
        except CoordinatorError as error:
            tell(error.error)

    def _view(self, group: str) -> int:
        """Which of all loads of its partition the group's state comes from."""
        return self._views.get(self.cluster.partition_of(group), NO_VIEW)

    def crash(self) -> None:
        self.alive = False
        lost, self.waiting = self.waiting, {}
        for answer in lost.values():
            answer.set(Reply(GONE, self.cluster.scheduler.now_ms(), NO_VIEW))


class Cluster:
    """Two brokers, of which one at least lives most of the time."""

    def __init__(
        self,
        scheduler: Scheduler,
        random: Random,
        log: SimulatedLog,
        settings: ShardSettings,
        brokers: int = 2,
    ) -> None:
        self.scheduler, self.log, self._random = scheduler, log, random
        self.partition_count = len(log.partitions)
        self._settings = settings
        self._lives = self._made = 0
        self.leaders = [-1] * self.partition_count
        self._news_at_ms = [0] * brokers
        self.brokers = [self._start() for _ in range(brokers)]
        for number in range(self.partition_count):
            self.lead(number, number % brokers)

    def _start(self) -> Broker:
        self._lives += 1
        return Broker(self, self._lives)

    def make_shard(self, context: Context, life: int) -> WatchedShard:
        seed = b"%d.%d" % (life, self._random.randrange(1 << 30))
        return WatchedShard(context, self.scheduler, SeededRandom(seed), self._settings)

    def partition_of(self, group: str) -> int:
        return partition_for(group, self.partition_count)

    def next_view(self) -> int:
        self._made += 1
        return self._made

    def coordinator(self, group: str) -> Broker | None:
        """The leader of a group's partition; None while nobody leads it."""
        leader = self.leaders[self.partition_of(group)]
        return self.brokers[leader] if leader >= 0 and self.brokers[leader].alive else None

    def lead(self, number: int, leader: int) -> None:
        """Move a partition; -1: nobody leads it. The same leader again gets a new epoch, after a moment
        in which nobody leads.
        """
        before, self.leaders[number] = self.leaders[number], leader
        if before >= 0:
            resigned = self.log.new_leader(number)
            self._news(before, lambda broker: broker.runtime.unload(number, resigned))
        if leader >= 0:
            epoch = self.log.new_leader(number)
            self._news(leader, lambda broker: broker.runtime.load(number, epoch))

    def _news(self, index: int, tell: Callable[[Broker], None]) -> None:
        broker = self.brokers[index]
        late = self._random.randrange(4) == 0
        now_ms = self.scheduler.now_ms()
        at_ms = max(now_ms + (self._random.randrange(800) if late else 0), self._news_at_ms[index])
        self._news_at_ms[index] = at_ms
        self.scheduler.add(at_ms - now_ms, lambda: tell(broker) if broker.alive else None)

    def crash(self, index: int) -> None:
        """Kill a broker. Its partitions have no leader until `take_over`."""
        self.brokers[index].crash()
        for number, leader in enumerate(self.leaders):
            if leader == index:
                self.leaders[number] = -1

    def restart(self, index: int) -> None:
        assert not self.brokers[index].alive, "it runs"
        self._news_at_ms[index] = 0
        self.brokers[index] = self._start()

    def take_over(self) -> None:
        """Give partitions without leader, or whose load failed, to brokers that live."""
        alive = [index for index, broker in enumerate(self.brokers) if broker.alive]
        for number, leader in enumerate(self.leaders):
            failed = leader >= 0 and self.brokers[leader].runtime.state(number) is State.FAILED
            if alive and (leader < 0 or failed):
                self.lead(number, self._random.choice(alive))

    def active(self) -> list[tuple[int, WatchedShard]]:
        """Partitions whose leader serves them at the current epoch, and what it has of them."""
        found = []
        for number, leader in enumerate(self.leaders):
            runtime = self.brokers[leader].runtime if leader >= 0 else None
            if runtime is not None and runtime.state(number) is State.ACTIVE and self._knows_epoch(number):
                found.append((number, runtime.read(number, lambda shard: shard)))
        return found

    def _knows_epoch(self, number: int) -> bool:
        return self._news_at_ms[self.leaders[number]] <= self.scheduler.now_ms()

    def close(self) -> None:
        """End every broker in order; nothing may be left without an answer."""
        for broker in self.brokers:
            if broker.alive:
                broker.runtime.close()
                assert not broker.waiting, f"{len(broker.waiting)} requests were never answered"

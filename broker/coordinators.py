"""What the coordinators of this broker have in common: when one is made, which partitions of its internal
topic it serves, and when it ends.

Nothing of a coordinator is imported until its topic exists or somebody asks for it, so that a broker that
does not need it pays nothing. At a start that finds the topic, all its partitions are loaded before the first
connection is served. Later the image decides: a partition is loaded when this broker becomes its leader and
unloaded when another one does, or when the topic is deleted.

Keys are spread over all partitions that the topic had when this broker first heard of it; one that grows
keeps its keys where they are until the next start. A broker of a cluster hears of partitions one by one, so
it asks the store how many there are, and looks after nobody before it knows.

The topic is made when a coordinator is first looked for, with Kafka's settings.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from protocol.errors import ErrorCode
from replication.controller.outcomes import NewTopic
from replication.metadata.image import NO_LEADER, changes_between
from replication.metadata.payloads import BadPayload
from replication.metadata.store import StoreError

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from coordinator.ports import Clock
    from coordinator.runtime import Context, CoordinatorRuntime
    from coordinator.shard import Shard
    from replication.controller.door import TopicCreator
    from replication.metadata.image import ClusterImage, ImageHolder, TopicImage
    from replication.produce import WriteTurn
    from replication.replica_manager import ReplicaManager
    from runtime.system import Env

CREATE_TIMEOUT_MS: Final = 30_000
LOADS_AT_ONCE: Final = 4  # each holds up to a load buffer
COUNT_AGAIN_S: Final = 1.0

CountPartitions: TypeAlias = Callable[[str], Awaitable[int]]
"""How many partitions a topic has by the store, 0 where it is not there or is to be deleted."""

log = logging.getLogger("ottla.coordinators")


class Manager(Protocol):
    """A coordinator as its life cycle sees it."""

    @property
    def runtime(self) -> CoordinatorRuntime[Any]: ...


M = TypeVar("M", bound=Manager)
S = TypeVar("S", bound="Shard")


class Loads:
    """Runs the loads of partitions, a few at a time. The coordinator's Spawner."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._slots = asyncio.Semaphore(LOADS_AT_ONCE)
        self._tasks: dict[asyncio.Task[None], None] = {}

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> object:
        """Start `coroutine` when there is room."""
        task = self._env.tasks.spawn(name, self._in_turn(coroutine))
        self._tasks[task] = None

        def ended(_: asyncio.Task[None]) -> None:
            self._tasks.pop(task, None)
            coroutine.close()  # one that was cancelled before its turn

        task.add_done_callback(ended)
        return task

    async def _in_turn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        async with self._slots:
            await coroutine

    async def settled(self) -> None:
        """Wait for all loads that were begun."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))


@dataclass(frozen=True, slots=True)
class Names:
    """How a coordinator's settings are called, and what the log says of it. None: there is no such setting,
    records are not compressed, and each write says how long it may take.
    """

    who: str
    partitions: str
    load_buffer: str
    codec: str | None = None
    write_timeout: str | None = None


class CoordinatorLife(ABC, Generic[M]):
    """See the module. `manager()` is what handlers work with; a broker alone has no `count_partitions`."""

    topic: ClassVar[str]
    names: ClassVar[Names]
    modules: ClassVar[tuple[str, ...]]  # what a coordinator is made of
    count_partitions: CountPartitions | None = None

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        holder: ImageHolder,
        creator: TopicCreator,
        replicas: ReplicaManager,
        turn: WriteTurn,
    ) -> None:
        """Comes after `replicas` among the image's subscribers: their logs are there when a load begins."""
        self._env, self._config, self._holder = env, config, holder
        self._creator, self._replicas, self._turn = creator, replicas, turn
        self._loads = Loads(env)
        self._manager: M | None = None
        self._closed = False
        self._counted: bytes | None = None  # the id of the topic whose partitions were, or are being, counted
        self._told = ""
        holder.subscribe(self._follow)

    async def start(self) -> None:
        """Load what the image gives this broker. Before anything is served."""
        await self._loads.settled()

    def close(self) -> None:
        """Refuse what is parked and serve nothing any more. The turn has been flushed before."""
        self._closed = True
        if self._manager is not None:
            self._manager.runtime.close()

    @property
    def closed(self) -> bool:
        """Whether the broker stops: nothing is coordinated here any more."""
        return self._closed

    def manager(self) -> M:
        """The coordinator, made at the first call. Without its topic it owns nothing: NOT_COORDINATOR."""
        if self._manager is None:
            self._manager = manager = self._make()
            if not self._closed:
                self._spread_keys(manager.runtime, self._holder.current.topics.get(self.topic))
                self._begin(manager)
        return self._manager

    def coordinator_of(self, key: str) -> int:
        """The broker that looks after a key: the leader of its partition. -1: nobody now."""
        image = self._holder.current
        if self.topic not in image.topics or self._closed or not self.manager().runtime.partition_count:
            return NO_LEADER
        index = self.manager().runtime.partition_for(key)
        partition = image.partition(self.topic, index)
        if partition is None or (self._replicas.any_offline and self._replicas.is_offline(self.topic, index)):
            return NO_LEADER
        return partition.leader

    def has_topic(self) -> bool:
        """Whether the coordinator has somewhere to keep its state."""
        return self.topic in self._holder.current.topics

    async def create_topic(self) -> ErrorCode:
        """Make the topic, where somebody else has not; on return its partitions are loaded."""
        await self._env.run_blocking(_bring, self.modules)  # 50 ms and more, which the loop need not wait for
        [outcome] = await self._creator.create_topics([self._new_topic()], timeout_ms=CREATE_TIMEOUT_MS)
        await self._loads.settled()
        if outcome.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return ErrorCode.NONE
        message = outcome.message or outcome.error.message
        if message != self._told:  # clients ask again several times a second
            self._told = message
            log.error(
                "%s have no coordinator, as %s cannot be created: %s", self.names.who, self.topic, message
            )
        return outcome.error

    @abstractmethod
    def _new_topic(self) -> NewTopic:
        """The topic as it is made."""

    @abstractmethod
    def _make(self) -> M:
        """The coordinator, which has not begun."""

    @abstractmethod
    def _begin(self, manager: M) -> None:
        """Start what runs by the clock."""

    @abstractmethod
    def _topics_deleted(self, manager: M, deleted: list[TopicImage]) -> None:
        """Topics are gone, the coordinator's own left out."""

    def _runtime(self, clock: Clock, make_shard: Callable[[Context], S]) -> CoordinatorRuntime[S]:
        from broker.adapters.topic_reader import TopicReader
        from broker.adapters.topic_writer import TopicWriter
        from coordinator.runtime import WRITE_TIMEOUT_MS, CoordinatorRuntime

        env, config, names = self._env, self._config, self.names
        return CoordinatorRuntime(
            self.topic,
            TopicWriter(self.topic, self._replicas, self._turn),
            TopicReader(self.topic, env, self._replicas),
            clock,
            env.timer,
            self._loads,
            make_shard,
            turn=env.pieces.turn,
            codec=config.integer(names.codec) if names.codec else 0,
            write_timeout_ms=config.integer(names.write_timeout) if names.write_timeout else WRITE_TIMEOUT_MS,
            load_buffer_bytes=config.integer(self.names.load_buffer),
        )

    def _every(self, name: str, interval_ms: int, work: Callable[[], None]) -> None:
        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                work()

        self._env.tasks.spawn(name, repeat())

    def _spread_keys(self, runtime: CoordinatorRuntime[Any], topic: TopicImage | None) -> None:
        """Over the partitions of the topic, or over as many as it will be made with."""
        if topic is None:
            self._counted = None
            runtime.start(self._config.integer(self.names.partitions))
        elif self.count_partitions is None:
            runtime.start(len(topic.partitions))
        elif self._counted != topic.topic_id:
            self._counted = topic.topic_id
            runtime.start(0)
            counting = self._count(runtime, topic.topic_id, self.count_partitions)
            self._loads.spawn(f"count of the partitions of {self.topic}", counting)

    async def _count(
        self, runtime: CoordinatorRuntime[Any], topic_id: bytes, count_partitions: CountPartitions
    ) -> None:
        count = None
        while count is None and self._counted == topic_id:
            try:
                count = await count_partitions(self.topic)
            except (StoreError, BadPayload) as error:
                log.warning(
                    "%s have no coordinator on this broker for a while, as the partitions of %s cannot be "
                    "counted: %s", self.names.who, self.topic, error,
                )  # fmt: skip
                await asyncio.sleep(COUNT_AGAIN_S)
        if count is not None and self._counted == topic_id and not self._closed:
            runtime.start(count)

    def _follow(self, old: ClusterImage, new: ClusterImage) -> None:
        if self._closed or old.topics is new.topics:
            return
        before, topic = old.topics.get(self.topic), new.topics.get(self.topic)
        if topic is not None or self._manager is not None:
            self._follow_topic(before, topic)
        if self._manager is not None:
            deleted = changes_between(old, new).deleted
            gone = [each for each in deleted if each.name != self.topic]
            if gone:
                self._topics_deleted(self._manager, gone)

    def _follow_topic(self, before: TopicImage | None, topic: TopicImage | None) -> None:
        if topic is before:
            return
        runtime = self.manager().runtime
        if before is not None and (topic is None or topic.topic_id != before.topic_id):
            for each in before.partitions:
                runtime.unload(each.index)
            before = None
        if before is None:
            self._spread_keys(runtime, topic)
        for each in topic.partitions if topic is not None else ():
            if each.leader == self._config.node_id:
                runtime.load(each.index, each.leader_epoch)
            else:
                runtime.unload(each.index, each.leader_epoch)


def _bring(modules: tuple[str, ...]) -> None:
    for name in modules:
        import_module(name)

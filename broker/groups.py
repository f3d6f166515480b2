"""The group coordinator of this broker: when it is made, which partitions it serves, and when it ends.

Nothing of it is imported until `__consumer_offsets` exists or somebody asks about a group, so that a broker
without groups pays nothing for them. At a start that finds the topic, all its partitions are loaded before
the first connection is served. Later the image decides: a partition is loaded when this broker becomes its
leader and unloaded when another one does, or when the topic is deleted.

`__consumer_offsets` is made when a group's coordinator is first looked for, with Kafka's settings.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from protocol.errors import ErrorCode
from replication.controller.outcomes import NewTopic
from replication.metadata.image import NO_LEADER, changes_between

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from coordinator.group.manager import GroupManager
    from replication.controller.controller import Controller
    from replication.metadata.image import ClusterImage, ImageHolder, TopicImage
    from replication.produce import WriteTurn
    from replication.replica_manager import ReplicaManager
    from runtime.system import Env

TOPIC: Final = "__consumer_offsets"
CREATE_TIMEOUT_MS: Final = 30_000
LOADS_AT_ONCE: Final = 4  # each holds up to offsets.load.buffer.size
_MINUTE_MS: Final = 60_000

log = logging.getLogger("ottla.groups")


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


class Groups:
    """See the module. `manager()` is what handlers work with."""

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        holder: ImageHolder,
        controller: Controller,
        replicas: ReplicaManager,
        turn: WriteTurn,
    ) -> None:
        """Comes after `replicas` among the image's subscribers: their logs are there when a load begins."""
        self._env, self._config, self._holder = env, config, holder
        self._controller, self._replicas, self._turn = controller, replicas, turn
        self._loads = Loads(env)
        self._manager: GroupManager | None = None
        self._closed = False
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

    def manager(self) -> GroupManager:
        """The coordinator, made at the first call. Without its topic it owns no group: NOT_COORDINATOR."""
        if self._manager is None:
            self._manager = self._make()
        return self._manager

    def coordinator_of(self, group_id: str) -> int:
        """The broker that looks after a group: the leader of its partition. -1: nobody now."""
        topic = self._holder.current.topics.get(TOPIC)
        if topic is None or self._closed:
            return NO_LEADER
        return topic.partitions[self.manager().runtime.partition_for(group_id)].leader

    def has_topic(self) -> bool:
        """Whether groups have somewhere to live."""
        return TOPIC in self._holder.current.topics

    async def create_topic(self) -> ErrorCode:
        """Make `__consumer_offsets`, where somebody else has not; on return its partitions are loaded."""
        config = self._config
        new = NewTopic(
            TOPIC,
            config.integer("offsets.topic.num.partitions"),
            config.integer("offsets.topic.replication.factor"),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config.integer("offsets.topic.segment.bytes"))),
            ),
        )
        [outcome] = await self._controller.create_topics([new], timeout_ms=CREATE_TIMEOUT_MS)
        await self._loads.settled()
        if outcome.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return ErrorCode.NONE
        message = outcome.message or outcome.error.message
        if message != self._told:  # clients ask again several times a second
            self._told = message
            log.error("Groups have no coordinator, as %s cannot be created: %s", TOPIC, message)
        return outcome.error

    def _make(self) -> GroupManager:
        from broker.adapters.steady_clock import SteadyClock
        from broker.adapters.topic_reader import TopicReader
        from broker.adapters.topic_writer import TopicWriter
        from coordinator.group.classic.events import GroupSettings
        from coordinator.group.manager import GroupManager
        from coordinator.group.shard import GroupShard, ShardSettings
        from coordinator.runtime import Context, CoordinatorRuntime

        env, config = self._env, self._config
        clock, random = SteadyClock(env.clock), env.random.fork("groups")
        settings = ShardSettings(
            GroupSettings(
                max_size=config.integer("group.max.size"),
                initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
                min_session_timeout_ms=config.integer("group.min.session.timeout.ms"),
                max_session_timeout_ms=config.integer("group.max.session.timeout.ms"),
            ),
            config.integer("offset.metadata.max.bytes"),
        )

        def make_shard(context: Context) -> GroupShard:
            return GroupShard(context, clock, random, settings)

        runtime = CoordinatorRuntime(
            TOPIC,
            TopicWriter(TOPIC, self._replicas, self._turn),
            TopicReader(TOPIC, env, self._replicas),
            clock,
            env.timer,
            self._loads,
            make_shard,
            codec=config.integer("offsets.topic.compression.codec"),
            write_timeout_ms=config.integer("offsets.commit.timeout.ms"),
            load_buffer_bytes=config.integer("offsets.load.buffer.size"),
        )
        retention_ms = config.integer("offsets.retention.minutes") * _MINUTE_MS
        manager = GroupManager(runtime, clock, env.timer, retention_ms)
        if not self._closed:
            topic = self._holder.current.topics.get(TOPIC)
            runtime.start(self._partition_count(topic))
            env.tasks.spawn("expiry of offsets", self._expire(manager))
        return manager

    def _partition_count(self, topic: TopicImage | None) -> int:
        if topic is not None:
            return len(topic.partitions)
        return self._config.integer("offsets.topic.num.partitions")

    def _follow(self, old: ClusterImage, new: ClusterImage) -> None:
        if self._closed or old.topics is new.topics:
            return
        before, topic = old.topics.get(TOPIC), new.topics.get(TOPIC)
        if topic is not None or self._manager is not None:
            self._follow_topic(before, topic)
        if self._manager is not None:
            gone = [each.name for each in changes_between(old, new).deleted if each.name != TOPIC]
            if gone:
                self._manager.topics_deleted(gone, _warn_if_kept)

    def _follow_topic(self, before: TopicImage | None, topic: TopicImage | None) -> None:
        if topic is before:
            return
        runtime = self.manager().runtime
        if before is not None and (topic is None or topic.topic_id != before.topic_id):
            for each in before.partitions:
                runtime.unload(each.index)
            before = None
        if before is None:  # a topic that grows keeps its groups where they are until the next start
            runtime.start(self._partition_count(topic))
        for each in topic.partitions if topic is not None else ():
            if each.leader == self._config.node_id:
                runtime.load(each.index, each.leader_epoch)
            else:
                runtime.unload(each.index, each.leader_epoch)

    async def _expire(self, manager: GroupManager) -> None:
        interval = self._config.integer("offsets.retention.check.interval.ms") / 1000
        while True:
            await asyncio.sleep(interval)
            manager.expire(_warn_if_kept)


def _warn_if_kept(error: ErrorCode, _: None) -> None:
    if error is not ErrorCode.NONE:
        log.warning("Offsets that are over were not removed, the next check tries again: %s", error.message)

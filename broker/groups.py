"""The group coordinator of this broker, over `__consumer_offsets`. Its life is `broker.coordinators`'."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.coordinators import CoordinatorLife, Names
from protocol.errors import ErrorCode
from replication.controller.outcomes import NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.config.broker_config import BrokerConfig
    from coordinator.group.manager import GroupManager
    from coordinator.group.share.ports import SharePersister
    from replication.controller.door import TopicCreator
    from replication.metadata.image import ImageHolder, TopicImage
    from replication.produce import WriteTurn
    from replication.replica_manager import ReplicaManager
    from runtime.system import Env

TOPIC: Final = "__consumer_offsets"
_MINUTE_MS: Final = 60_000

log = logging.getLogger("ottla.groups")


class Groups(CoordinatorLife["GroupManager"]):
    """See the module. A key is a group id."""

    topic = TOPIC
    modules = ("coordinator.group.manager", "coordinator.group.shard", "broker.config.group_configs")
    names = Names(
        who="Groups",
        partitions="offsets.topic.num.partitions",
        codec="offsets.topic.compression.codec",
        write_timeout="offsets.commit.timeout.ms",
        load_buffer="offsets.load.buffer.size",
    )

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        holder: ImageHolder,
        creator: TopicCreator,
        replicas: ReplicaManager,
        turn: WriteTurn,
    ) -> None:
        """The hooks are for those who know finalized features, and the share coordinator."""
        self.share_persister: Callable[[], SharePersister] | None = None
        self.consumer_feature: Callable[[], bool] = lambda: True
        super().__init__(env, config, holder, creator, replicas, turn)

    def _new_topic(self) -> NewTopic:
        config = self._config
        return NewTopic(
            TOPIC,
            config.integer("offsets.topic.num.partitions"),
            config.integer("offsets.topic.replication.factor"),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config.integer("offsets.topic.segment.bytes"))),
            ),
        )

    def _make(self) -> GroupManager:
        from broker.adapters.steady_clock import SteadyClock
        from broker.config.group_configs import GroupConfigs
        from broker.group_settings import shard_settings
        from coordinator.group.manager import GroupManager
        from coordinator.group.shard import GroupShard
        from coordinator.runtime import Context

        env, config = self._env, self._config
        clock, random = SteadyClock(env.clock), env.random.fork("groups")
        settings = shard_settings(
            config,
            self._holder,
            lambda: self.consumer_feature(),
            GroupConfigs(config, self._holder).integer,
        )

        def make_shard(context: Context) -> GroupShard:
            return GroupShard(context, clock, random, settings)

        runtime = self._runtime(clock, make_shard)
        manager = GroupManager(
            runtime,
            clock,
            env.timer,
            config.integer("offsets.retention.minutes") * _MINUTE_MS,
            settings.consumer.enabled,
        )
        if self.share_persister is not None:
            from broker.adapters.latest_offsets import ReplicaLatestOffsets
            from coordinator.group.share.requests import ShareRequests

            manager.share = ShareRequests(runtime, self.share_persister, ReplicaLatestOffsets(self._replicas))
        return manager

    def _begin(self, manager: GroupManager) -> None:
        interval_ms = self._config.integer("offsets.retention.check.interval.ms")
        self._every("expiry of offsets", interval_ms, lambda: manager.expire(_warn_if_kept))

    def _topics_deleted(self, manager: GroupManager, deleted: list[TopicImage]) -> None:
        ids = [each.topic_id for each in deleted]
        manager.topics_deleted([each.name for each in deleted], _warn_if_kept, ids)


def _warn_if_kept(error: ErrorCode, _: None) -> None:
    if error is not ErrorCode.NONE:
        log.warning("Offsets that are over were not removed, the next check tries again: %s", error.message)

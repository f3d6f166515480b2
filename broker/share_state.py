"""The share coordinator of this broker, over `__share_group_state`. Its life is `broker.coordinators`'.

The topic is not compacted and keeps everything; what is not needed any more is deleted from its front every
share.coordinator.state.topic.prune.interval.ms, and share partitions whose snapshot holds that up get a new
one every share.coordinator.cold.partition.snapshot.interval.ms.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.coordinators import CoordinatorLife, Names
from replication.controller.outcomes import NewTopic
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.share.persister import Persister
    from coordinator.share.manager import ShareStateManager
    from replication.metadata.image import TopicImage

TOPIC: Final = "__share_group_state"

log = logging.getLogger("ottla.share")


class ShareState(CoordinatorLife["ShareStateManager"]):
    """See the module. A key is "group:topic id:partition"."""

    topic = TOPIC
    modules = ("coordinator.share.manager", "coordinator.share.shard")
    names = Names(
        who="Share groups",
        partitions="share.coordinator.state.topic.num.partitions",
        codec="share.coordinator.state.topic.compression.codec",
        write_timeout="share.coordinator.write.timeout.ms",
        load_buffer="share.coordinator.load.buffer.size",
    )
    _persister: Persister | None = None

    def persister(self) -> Persister:
        """The way to the state for share-partition leaders and group coordinators of this broker."""
        if self._persister is None:
            from broker.share.persister import Persister

            self._persister = Persister(self, self._env)
        return self._persister

    def close(self) -> None:
        """As the base's; who waits for the persister is answered, too."""
        super().close()
        if self._persister is not None:
            self._persister.close()

    def _new_topic(self) -> NewTopic:
        config = self._config
        return NewTopic(
            TOPIC,
            config.integer("share.coordinator.state.topic.num.partitions"),
            config.integer("share.coordinator.state.topic.replication.factor"),
            configs=(
                ("cleanup.policy", "delete"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config.integer("share.coordinator.state.topic.segment.bytes"))),
                ("min.insync.replicas", str(config.integer("share.coordinator.state.topic.min.isr"))),
                ("retention.ms", "-1"),
            ),
        )

    def _make(self) -> ShareStateManager:
        from broker.adapters.steady_clock import SteadyClock
        from coordinator.runtime import Context
        from coordinator.share.manager import ShareStateManager
        from coordinator.share.shard import ShardSettings, ShareShard

        config = self._config
        clock = SteadyClock(self._env.clock)
        settings = ShardSettings(
            self._count_of,
            config.integer("share.coordinator.snapshot.update.records.per.snapshot"),
        )

        def make_shard(context: Context) -> ShareShard:
            return ShareShard(context, clock, settings)

        return ShareStateManager(
            self._runtime(clock, make_shard),
            config.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
        )

    def _count_of(self, topic_id: bytes) -> int:
        topic = self._holder.current.topics_by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def _begin(self, manager: ShareStateManager) -> None:
        config = self._config
        prune_ms = config.integer("share.coordinator.state.topic.prune.interval.ms")
        cold_ms = config.integer("share.coordinator.cold.partition.snapshot.interval.ms")
        self._every("pruning of share state", prune_ms, self.prune)
        self._every("snapshots of cold share state", cold_ms, manager.repeat_cold_snapshots)

    def _topics_deleted(self, manager: ShareStateManager, deleted: list[TopicImage]) -> None:
        manager.topics_deleted([each.topic_id for each in deleted])

    def prune(self) -> None:
        """Delete from the logs what the coordinator does not need any more.

        The new starts are written with the next checkpoint: what a crash brings back is pruned again.
        """
        for index, offset in self.manager().needed_from():
            replica = self._replicas.get(TOPIC, index)
            if replica is None or offset <= replica.log.start_offset:
                continue
            try:
                replica.delete_records(offset)
            except StorageError as error:
                log.warning("%s-%d was not pruned, the next turn tries again: %s", TOPIC, index, error)

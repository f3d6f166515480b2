"""The replicas of a broker in a cluster: roles come by LeaderAndIsr and StopReplica, not by images.

The image (from UpdateMetadata) tells which topics exist, who is alive and how topics are configured. A topic
that the image does not know is served to nobody, even where LeaderAndIsr has come already, as in Kafka: a
client that asks here was told of the topic by a broker that knows more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication import roles
from replication.cluster.metadata_cache import led_topic
from replication.fetch import Wanted
from replication.isr import IsrChange
from replication.leadership import LeaderContext
from replication.metadata.image import (
    ClusterImage,
    ImageHolder,
    PartitionImage,
    TopicImage,
    changes_between,
)
from replication.partition import Partition
from replication.replica_manager import Logs, ReplicaManager, TopicConfigOf
from storage.errors import StorageError, StorageFailed

_log = logging.getLogger(__name__)


class Fetching(Protocol):
    """Whoever copies the leaders' logs."""

    def follow(self, partition: Partition) -> None:
        """Fetch from the partition's leader from now on, under its present epoch."""

    def forget(self, partition: Partition) -> None:
        """Fetch no more; no error if nobody did."""


class ClusterReplicas(ReplicaManager):
    """See the module. `fetching` is set before the first role comes. `ask_again` has the controller send the
    roles again that this broker has refused. `departing`: it is about to stop, and copies no more what it has
    led until then. Kafka's goes on, so that the new leader proposes it for the ISR again and again; and where
    it was the controller, the last proposal holds up all acks=all until another one is elected.
    """

    fetching: Fetching

    def __init__(
        self,
        node_id: int,
        holder: ImageHolder,
        logs: Logs,
        config_of: TopicConfigOf,
        *,
        lag_max_ms: int,
        now_ms: Callable[[], int],
        propose: Callable[[Partition, IsrChange], None],
    ) -> None:
        super().__init__(node_id, holder, logs, config_of)
        self._fenced = False
        self._without_room = False  # a role was refused for that
        self.departing = False
        self.ask_again: Callable[[], None] = lambda: None
        self.context = LeaderContext(node_id, lag_max_ms, now_ms, self.is_alive, propose)

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self._node_id

    def is_alive(self, broker_id: int) -> bool:
        """Whether the metadata cache has the broker among the live ones."""
        return broker_id in self._holder.current.brokers

    def leads_for_others(self) -> bool:
        """Whether a partition is led here that another broker could lead."""
        return any(partition.leadership is not None for partition in self)

    # Images

    def apply(self, old: ClusterImage, new: ClusterImage) -> None:
        """Topics and their configurations; roles do not come from here."""
        if any(broker_id not in old.brokers for broker_id in new.brokers):
            self._look_again()
        if any(broker_id not in new.brokers for broker_id in old.brokers):
            self._wait_for_fewer()
        if old.topics is new.topics and old.configs is new.configs:
            return
        changes = changes_between(old, new)
        for topic in changes.created:  # the log may be older than what is known of its topic
            self._follow_topic_config(new, topic)
        self._follow_configs(new, changes.configs)
        if changes.created or changes.deleted or changes.configs:
            self.changed()

    def _look_again(self) -> None:
        """A broker is alive again: it may join ISRs with its next fetch, even if that brings nothing new."""
        for partition in self:
            if partition.leadership is not None:
                partition.look_again()

    def _wait_for_fewer(self) -> None:
        """A broker is gone: followers there that were about to join hold no high watermark any more. Kafka's
        leaders see that with the next append or fetch, and producers with acks=all may be waiting for this.
        """
        for partition in self:
            if partition.leadership is not None:
                partition.leadership.look()

    def wanted_partition(self, wanted: Wanted) -> Partition | ErrorCode:
        """As the base, for topics that the image knows."""
        image = self._holder.current
        if wanted.topic:
            if wanted.topic not in image.topics:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif wanted.topic_id not in image.topics_by_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        return super().wanted_partition(wanted)

    # Roles

    def learn_leaders(self, told: Mapping[tuple[str, bytes], Iterable[PartitionImage]]) -> None:
        """Have the metadata cache name the leaders that LeaderAndIsr tells, by name and id of their topics.

        A client that is refused here asks for the leader at once, and UpdateMetadata comes a moment later.
        Kafka's brokers name the one before, upon which clients wait for their retry.backoff.ms twice.
        """
        image = self._holder.current
        topics = [led_topic(image, *topic, partitions) for topic, partitions in told.items()]
        changed = [topic for topic in topics if topic is not None]
        if changed:
            self._holder.publish(image.with_topics(changed))

    def host(self, topic: str, topic_id: bytes, index: int, is_new: bool) -> Partition | ErrorCode:
        """The partition, made with its log where it is missing; 103 for a log of another topic, 56."""
        partition = self._by_name.get((topic, index))
        log = partition.log if partition is not None else self._logs.get(topic, index)
        if log is not None and ZERO_UUID not in (topic_id, log.topic_id) and log.topic_id != topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if partition is None:
            known = topic_id if log is None or topic_id != ZERO_UUID else log.topic_id
            config = self._topic_config(self._holder.current, topic)
            partition = self._make(TopicImage(topic, known, ()), index, config, is_new)
            if partition is None:
                return self._refused(self.failed[topic, index])
            partition.fenced = self._fenced
        return ErrorCode.KAFKA_STORAGE_ERROR if partition.offline else partition

    def become_leader(self, partition: Partition, state: PartitionImage) -> ErrorCode:
        """Lead under the new epoch: NONE, or 56 where it cannot be noted in the log."""
        self.fetching.forget(partition)
        try:
            roles.become_leader(partition, state, self.context)
        except StorageError as error:
            _log.error("%s is not led: %s", partition, error)
            return self._refused(error)
        self.changed()
        return ErrorCode.NONE

    def become_follower(self, partition: Partition, state: PartitionImage) -> ErrorCode:
        """Follow the leader; NONE, or 56.

        A leader that is not alive as far as is known is not followed, and its epoch is not taken, so that
        the same LeaderAndIsr is accepted again. Whoever led until now steps down all the same.
        """
        try:
            if not self.is_alive(state.leader):
                _log.warning("%s: leader %d is not alive; not followed", partition, state.leader)
                if partition.is_leader:
                    roles.step_down(partition)
                    self.changed()
                return ErrorCode.NONE
            if roles.become_follower(partition, state):
                if self.departing and self._node_id not in state.isr:
                    self.fetching.forget(partition)
                else:
                    self.fetching.follow(partition)
                self.changed()
        except StorageError as error:
            _log.error("%s does not follow: %s", partition, error)
            return self._refused(error)
        return ErrorCode.NONE

    def _refused(self, error: StorageError) -> ErrorCode:
        """56: the controller has others lead, and takes the replica for offline until it is served again."""
        if isinstance(error, StorageFailed) and not error.offline:
            self._without_room = True
        return ErrorCode.KAFKA_STORAGE_ERROR

    def stop(self, topic: str, index: int, delete: bool) -> ErrorCode:
        """The replica leaves this broker, with its log if `delete`; NONE, or 56 where that stays on disk."""
        self.failed.pop((topic, index), None)
        partition = self._by_name.pop((topic, index), None)
        if partition is not None:
            self._by_id.pop((partition.topic_id, index), None)
            self.fetching.forget(partition)
            partition.retire()
            self.changed()
        if delete and self._logs.get(topic, index) is not None:
            try:
                self._logs.delete(topic, index)
            except StorageError as error:
                _log.error("The log of deleted %s-%d stays on disk: %s", topic, index, error)
                return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def make_missing(self) -> int:
        """There may be room now: the controller is asked for the roles that found none."""
        self._unmade.clear()
        if self._without_room:
            self._without_room = False
            self.ask_again()
        return 0

    def directory_failed(self) -> None:
        """As the base; and nothing is copied any more to what lay there."""
        for partition in self:
            if partition.offline:
                self.fetching.forget(partition)
        super().directory_failed()

    def fence(self, fenced: bool) -> None:
        """Refuse acks 0 and 1 from now on, or accept them again (self_fence)."""
        self._fenced = fenced
        for partition in self:
            partition.fenced = fenced
        self.changed()

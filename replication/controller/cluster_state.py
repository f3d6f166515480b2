"""All that an active controller knows of its cluster, for the time of one controller epoch.

The state is built from the store when the controller takes over and thrown away when it resigns. It changes
only inside an event of the controller, after the store has taken the change; nothing here does I/O. What is
iterated is a dict, so that the order of effects is that of the insertions and never that of a set.

"Online" is a replica whose broker is live, not shutting down, and has not lost the replica's directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from replication.controller.assignment import NOWHERE, Assignment
from replication.controller.states import PartitionState, ReplicaState
from replication.metadata.image import NO_LEADER, BrokerImage

EPOCH_DURING_DELETE = -2
"""The leader epoch that StopReplica has for a topic that is deleted: it passes every fence."""

NO_EPOCH = -1


class TopicPartition(NamedTuple):
    """A partition by the name of its topic and its index."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Replica(NamedTuple):
    """The replica of a partition on a broker."""

    partition: TopicPartition
    broker: int


@dataclass(slots=True, frozen=True)
class Leadership:
    """What the state node of a partition holds. `partition_epoch` is the version of that node."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int
    recovering: bool = False

    def led_by(self, leader: int, isr: tuple[int, ...] | None = None) -> Leadership:
        """With the next leader epoch, another leader and, where given, other members in sync."""
        return replace(
            self,
            leader=leader,
            leader_epoch=self.leader_epoch + 1,
            isr=self.isr if isr is None else isr,
        )

    def without(self, broker: int) -> Leadership:
        """After a replica went offline: the last member in sync stays one, for only it has all records."""
        isr = tuple(member for member in self.isr if member != broker) if len(self.isr) > 1 else self.isr
        return self.led_by(NO_LEADER if self.leader == broker else self.leader, isr)


@dataclass(slots=True)
class ControllerState:
    """See the module. `brokers` are all registered ones, also those that are shutting down."""

    controller_id: int
    epoch: int
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    shutting_down: dict[int, None] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    topic_names: dict[bytes, str] = field(default_factory=dict)
    assignments: dict[str, dict[int, Assignment]] = field(default_factory=dict)
    leaderships: dict[TopicPartition, Leadership] = field(default_factory=dict)
    partition_states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: dict[Replica, ReplicaState] = field(default_factory=dict)
    offline_dirs: dict[int, dict[TopicPartition, None]] = field(default_factory=dict)
    reassigning: dict[TopicPartition, None] = field(default_factory=dict)
    deleting: dict[str, None] = field(default_factory=dict)
    """Topics queued for deletion, whether it has begun or not."""
    deletion_started: dict[str, None] = field(default_factory=dict)
    deletion_ineligible: dict[str, None] = field(default_factory=dict)

    # Brokers

    @property
    def live(self) -> list[int]:
        """Brokers that may lead and be in sync, ascending."""
        return [broker for broker in sorted(self.brokers) if broker not in self.shutting_down]

    @property
    def reachable(self) -> list[int]:
        """Brokers to which requests go: live or shutting down, ascending."""
        return sorted(self.brokers)

    def is_live(self, broker: int) -> bool:
        return broker in self.brokers and broker not in self.shutting_down

    def is_online(self, broker: int, partition: TopicPartition, *, shutting_down: bool = False) -> bool:
        """With `shutting_down` such brokers count as online."""
        present = broker in self.brokers if shutting_down else self.is_live(broker)
        return present and partition not in self.offline_dirs.get(broker, {})

    # Topics and partitions

    def add_topic(self, topic: str, topic_id: bytes, assignments: dict[int, Assignment]) -> None:
        self.topic_ids[topic] = topic_id
        self.topic_names[topic_id] = topic
        self.assignments[topic] = assignments

    def remove_topic(self, topic: str) -> None:
        """Forget the topic, whatever state its parts are in."""
        for replica in self.replicas_of_topic(topic):
            self.replica_states.pop(replica, None)
        for partition in self.partitions_of(topic):
            for table in (self.leaderships, self.partition_states, self.reassigning):
                table.pop(partition, None)
            for offline in self.offline_dirs.values():
                offline.pop(partition, None)
        self.assignments.pop(topic, None)
        self.topic_names.pop(self.topic_ids.pop(topic, b""), None)
        for topics in (self.deleting, self.deletion_started, self.deletion_ineligible):
            topics.pop(topic, None)

    def is_going(self, topic: str) -> bool:
        """Whether the topic is to be deleted and served no more. One that is still being reassigned is served
        until that has ended: Kafka hides it at once, and then the reassignment may never end.
        """
        if topic not in self.deleting:
            return False
        return all(partition.topic != topic for partition in self.reassigning)

    def assignment(self, partition: TopicPartition) -> Assignment:
        return self.assignments.get(partition.topic, {}).get(partition.partition, NOWHERE)

    def assign(self, partition: TopicPartition, assignment: Assignment) -> None:
        self.assignments[partition.topic][partition.partition] = assignment

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [TopicPartition(topic, index) for index in self.assignments.get(topic, {})]

    def all_partitions(self) -> Iterator[TopicPartition]:
        for topic, assignments in self.assignments.items():
            for index in assignments:
                yield TopicPartition(topic, index)

    def partitions_on(self, broker: int) -> list[TopicPartition]:
        return [
            TopicPartition(topic, index)
            for topic, assignments in self.assignments.items()
            for index, assignment in assignments.items()
            if broker in assignment.replicas
        ]

    def led_by(self, broker: int) -> list[TopicPartition]:
        return [partition for partition, known in self.leaderships.items() if known.leader == broker]

    def with_offline_leader(self) -> list[TopicPartition]:
        """Partitions whose leader is not online, except those of topics that are deleted."""
        return [
            partition
            for partition, known in self.leaderships.items()
            if not self.is_going(partition.topic) and not self.is_online(known.leader, partition)
        ]

    def leader_epoch_to_stop(self, partition: TopicPartition) -> int:
        """The leader epoch that a StopReplica names."""
        if self.is_going(partition.topic):
            return EPOCH_DURING_DELETE
        known = self.leaderships.get(partition)
        return NO_EPOCH if known is None else known.leader_epoch

    # Replicas

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> list[Replica]:
        return [Replica(p, broker) for p in partitions for broker in self.assignment(p).replicas]

    def replicas_of_topic(self, topic: str) -> list[Replica]:
        return self.replicas_of(self.partitions_of(topic))

    def replicas_on(self, broker: int) -> list[Replica]:
        return [Replica(partition, broker) for partition in self.partitions_on(broker)]

    def replica_state(self, replica: Replica) -> ReplicaState:
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def replicas_in(self, topic: str, state: ReplicaState) -> list[Replica]:
        return [r for r in self.replicas_of_topic(topic) if self.replica_state(r) is state]

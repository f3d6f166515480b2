"""The controller's state as an image, for the rules that CreateTopics and its kin share with a node alone.

Topics are made when they are looked at: a request looks at few of them, and there may be thousands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from replication.controller.cluster_state import ControllerState, TopicPartition
from replication.metadata.configs import ConfigResource
from replication.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage


class _Topics(Mapping[str, TopicImage]):
    def __init__(self, state: ControllerState) -> None:
        self._state = state

    def __getitem__(self, name: str) -> TopicImage:
        state = self._state
        return TopicImage(
            name,
            state.topic_ids[name],
            tuple(
                _partition(state, TopicPartition(name, index)) for index in sorted(state.assignments[name])
            ),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._state.assignments)

    def __len__(self) -> int:
        return len(self._state.assignments)


class _TopicsById(Mapping[bytes, TopicImage]):
    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._topics = _Topics(state)

    def __getitem__(self, topic_id: bytes) -> TopicImage:
        return self._topics[self._state.topic_names[topic_id]]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._state.topic_names)

    def __len__(self) -> int:
        return len(self._state.topic_names)


def image_of(
    state: ControllerState, configs: Mapping[ConfigResource, Mapping[str, str]] | None = None
) -> ClusterImage:
    """A view of the state: it changes with it. Brokers that are shutting down are not in it."""
    return ClusterImage(
        controller_id=state.controller_id,
        controller_epoch=state.epoch,
        brokers={broker: state.brokers[broker] for broker in state.live},
        topics=_Topics(state),
        topics_by_id=_TopicsById(state),
        configs=configs or {},
    )


def _partition(state: ControllerState, partition: TopicPartition) -> PartitionImage:
    assignment, known = state.assignment(partition), state.leaderships.get(partition)
    where = assignment.replicas, assignment.adding, assignment.removing
    if known is None:
        return PartitionImage(partition.partition, NO_LEADER, -1, -1, (), *where)
    return PartitionImage(
        partition.partition,
        known.leader,
        known.leader_epoch,
        known.partition_epoch,
        known.isr,
        *where,
        known.recovering,
    )

"""Which partitions of a share group have state with the share coordinator (record 15), and how that changes.

A partition is initializing from when its state is asked for until the share coordinator has written it, and
initialized from then on: only then it may be handed out. A topic is deleting while its state is removed.

Values are never changed in place; each step makes the next value, which a record carries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from coordinator.group.modern.records import read_value, record, tombstone
from coordinator.result import CoordinatorRecord
from protocol import messages as m

KIND: Final = 15


@dataclass(frozen=True, slots=True)
class StateTopic:
    """Some partitions of a topic."""

    name: str
    partitions: frozenset[int]


StateTopics: TypeAlias = Mapping[bytes, StateTopic]
Partitions: TypeAlias = Mapping[bytes, Iterable[int]]


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """The state partitions of a group, by topic id. `since_ms` is when this broker learned of this value:
    initializing that takes much longer is begun again. It is not part of the record.
    """

    initializing: dict[bytes, StateTopic] = field(default_factory=dict)
    initialized: dict[bytes, StateTopic] = field(default_factory=dict)
    deleting: dict[bytes, str] = field(default_factory=dict)
    since_ms: int = field(default=0, compare=False)

    def topic_ids(self) -> set[bytes]:
        """All topics that are in it."""
        return {*self.initializing, *self.initialized, *self.deleting}


NONE_YET: Final = StatePartitions()


def merged(one: StateTopics, other: StateTopics) -> dict[bytes, StateTopic]:
    """Both, partition by partition."""
    result = dict(one)
    for topic_id, topic in other.items():
        known = result.get(topic_id)
        result[topic_id] = (
            topic if known is None else StateTopic(topic.name, known.partitions | topic.partitions)
        )
    return result


def without(topics: StateTopics, partitions: Partitions) -> dict[bytes, StateTopic]:
    """What is left when partitions are taken out; topics with none left go."""
    result = dict(topics)
    for topic_id, gone in partitions.items():
        if (topic := result.pop(topic_id, None)) is not None:
            left = topic.partitions.difference(gone)
            if left:
                result[topic_id] = StateTopic(topic.name, left)
    return result


def begin(state: StatePartitions, new: StateTopics) -> StatePartitions:
    """Partitions whose initializing begins. A topic that was being deleted is there again."""
    deleting = {topic_id: name for topic_id, name in state.deleting.items() if topic_id not in new}
    return StatePartitions(merged(state.initializing, new), state.initialized, deleting)


def succeeded(
    state: StatePartitions, partitions: Partitions, name_of: Callable[[bytes], str | None]
) -> StatePartitions:
    """Partitions that the share coordinator has state for now.

    Only what still waits for it counts: a topic may have been deleted meanwhile, or the group.
    """
    done: dict[bytes, StateTopic] = {}
    for topic_id, indexes in partitions.items():
        waiting = state.initializing.get(topic_id)
        name = name_of(topic_id)
        if waiting is not None and name is not None and (new := waiting.partitions.intersection(indexes)):
            done[topic_id] = StateTopic(name, new)
    return StatePartitions(
        without(state.initializing, partitions), merged(state.initialized, done), state.deleting
    )


def failed(state: StatePartitions, partitions: Partitions) -> StatePartitions:
    """Partitions that could not be initialized: the next heartbeat begins again."""
    return StatePartitions(without(state.initializing, partitions), state.initialized, state.deleting)


def deleting(state: StatePartitions, topics: Mapping[bytes, str]) -> StatePartitions:
    """Initialized topics (id to name) whose state is about to be removed."""
    left = {topic_id: topic for topic_id, topic in state.initialized.items() if topic_id not in topics}
    return StatePartitions(state.initializing, left, {**state.deleting, **topics})


def deleting_all(state: StatePartitions) -> StatePartitions:
    """All topics are, as their group goes."""
    topics = {**state.initialized, **state.initializing}
    names = {topic_id: topic.name for topic_id, topic in topics.items()}
    return StatePartitions({}, {}, {**state.deleting, **names})


def deleted(state: StatePartitions, topic_ids: Iterable[bytes]) -> StatePartitions:
    """Topics whose state has been removed."""
    gone = frozenset(topic_ids)
    left = {topic_id: name for topic_id, name in state.deleting.items() if topic_id not in gone}
    return StatePartitions(state.initializing, state.initialized, left)


def topics_gone(state: StatePartitions, topic_ids: Iterable[bytes]) -> StatePartitions:
    """Topics were deleted; the share coordinator drops their state by itself."""
    gone = frozenset(topic_ids)
    return StatePartitions(
        {topic_id: topic for topic_id, topic in state.initializing.items() if topic_id not in gone},
        {topic_id: topic for topic_id, topic in state.initialized.items() if topic_id not in gone},
        {topic_id: name for topic_id, name in state.deleting.items() if topic_id not in gone},
    )


def state_record(group_id: str, state: StatePartitions) -> CoordinatorRecord:
    """Type 15."""
    cls = m.ShareGroupStatePartitionMetadataValue

    def infos(topics: StateTopics) -> list[m.ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
        return [
            cls.TopicPartitionsInfo(
                topic_id=topic_id, topic_name=topic.name, partitions=sorted(topic.partitions)
            )
            for topic_id, topic in topics.items()
        ]

    value = cls(
        initializing_topics=infos(state.initializing),
        initialized_topics=infos(state.initialized),
        deleting_topics=[
            cls.TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in state.deleting.items()
        ],
    )
    return record(KIND, group_id, None, value)


def state_tombstone(group_id: str) -> CoordinatorRecord:
    """Type 15, of a group that is removed."""
    return tombstone(KIND, group_id)


def read_state(value: bytes, now_ms: int) -> StatePartitions | None:
    """Type 15; None for a version that is not known. Raises MalformedMessage."""
    read = read_value(m.ShareGroupStatePartitionMetadataValue, value)
    if read is None:
        return None
    return StatePartitions(
        {each.topic_id: StateTopic(each.topic_name, frozenset(each.partitions))
         for each in read.initializing_topics},
        {each.topic_id: StateTopic(each.topic_name, frozenset(each.partitions))
         for each in read.initialized_topics},
        {each.topic_id: each.topic_name for each in read.deleting_topics},
        now_ms,
    )  # fmt: skip

"""Topics that lie in the log directories while the metadata store is empty: a data directory that Apache
Kafka wrote, or one whose metadata file was lost; and partitions that Kafka added to a topic of ours. Pure.

What the directories say is enough for name, id and number of partitions (partition.metadata); the leader
epoch must be at least the newest one in the logs, or the epoch cache would drop what it holds. Topic
configurations are not on disk and fall back to the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count, takewhile

from replication import topic_names
from replication.controller.topic_creation import encode_assignment, state_creations
from replication.metadata import paths
from replication.metadata.image import PartitionImage, TopicImage
from replication.metadata.store import Create, Operation, Put


@dataclass(slots=True, frozen=True)
class LogOnDisk:
    """A partition directory. `topic_id` is None where partition.metadata is missing; `last_epoch` is the
    newest leader epoch of its cache, -1 without any.
    """

    topic: str
    partition: int
    topic_id: bytes | None
    last_epoch: int


def adopt(logs: Iterable[LogOnDisk], node_id: int) -> tuple[list[TopicImage], list[str]]:
    """The topics that can be registered, sorted by name, and the names of those that cannot: no id, several
    ids, a number missing among the partitions, not a topic name, or Kafka's own metadata.
    """
    by_name: dict[str, dict[int, LogOnDisk]] = {}
    for log in logs:
        by_name.setdefault(log.topic, {})[log.partition] = log
    adopted: list[TopicImage] = []
    left: list[str] = []
    for name, partitions in sorted(by_name.items()):
        ids = {log.topic_id for log in partitions.values()}
        topic_id = next(iter(ids))
        complete = sorted(partitions) == list(range(len(partitions)))
        legal = topic_names.refusal_of(name) is None and name != topic_names.METADATA_TOPIC
        if len(ids) != 1 or topic_id is None or not complete or not legal:
            left.append(name)
            continue
        found = tuple(_partition(partitions[index], node_id) for index in range(len(partitions)))
        adopted.append(TopicImage(name, topic_id, found))
    return adopted, left


def _partition(log: LogOnDisk, node_id: int) -> PartitionImage:
    return PartitionImage(log.partition, node_id, log.last_epoch + 1, 0, (node_id,), (node_id,))


def grown(
    known: Mapping[str, TopicImage], logs: Iterable[LogOnDisk], node_id: int
) -> list[tuple[TopicImage, tuple[PartitionImage, ...]]]:
    """Topics of which there are more partitions on disk than are known, as they are now, and the new ones.

    Those have the topic's id and numbers that go on from the known ones.
    """
    more: dict[str, dict[int, LogOnDisk]] = {}
    for log in logs:
        topic = known.get(log.topic)
        if topic is not None and log.partition >= len(topic.partitions) and log.topic_id == topic.topic_id:
            more.setdefault(log.topic, {})[log.partition] = log
    found: list[tuple[TopicImage, tuple[PartitionImage, ...]]] = []
    for name, extra in sorted(more.items()):
        topic, numbers = known[name], count(len(known[name].partitions))
        added = tuple(_partition(extra[index], node_id) for index in takewhile(extra.__contains__, numbers))
        if added:
            found.append((replace(topic, partitions=topic.partitions + added), added))
    return found


def growth(
    topics: Iterable[tuple[TopicImage, tuple[PartitionImage, ...]]], controller_epoch: int
) -> list[Operation]:
    """The writes that make added partitions known."""
    operations: list[Operation] = []
    for topic, added in topics:
        operations.append(Put(paths.topic(topic.name), encode_assignment(topic)))
        operations += state_creations(topic.name, added, controller_epoch)
    return operations


def registration(topics: Iterable[TopicImage], controller_epoch: int) -> list[Operation]:
    """The writes that make adopted topics known."""
    operations: list[Operation] = []
    for topic in topics:
        operations.append(Create(paths.topic(topic.name), encode_assignment(topic)))
        operations.append(Create(paths.partitions(topic.name), b""))
        operations += state_creations(topic.name, topic.partitions, controller_epoch)
    return operations

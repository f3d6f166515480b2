"""DeleteTopics: which topics go, and what that writes. Pure, as topic_creation.

Whether topics may be deleted at all (`delete.topic.enable`) and who may do it is decided by the handler. A
topic whose removal is persisted is gone for clients at once; its files follow when the image is applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication.controller.outcomes import DeletionOutcome, Refused, TopicToDelete
from replication.metadata import paths
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, TopicImage
from replication.metadata.store import Delete, Operation


@dataclass(slots=True)
class Deletions:
    """What is to be written, and the names that leave the image."""

    operations: list[Operation] = field(default_factory=list)
    removed: dict[str, TopicImage] = field(default_factory=dict)

    def image_after(self, image: ClusterImage) -> ClusterImage:
        configs: dict[ConfigResource, dict[str, str]] = {
            ConfigResource(ConfigType.TOPIC, name): {} for name in self.removed
        }
        return image.with_topics((), self.removed).with_configs(configs) if self.removed else image


def plan_deletions(
    image: ClusterImage, wanted: Sequence[TopicToDelete]
) -> tuple[list[DeletionOutcome], Deletions]:
    """One outcome for each distinct topic. A name or id given twice is answered once, with 42."""
    deletions = Deletions()
    times = Counter((topic.name, topic.topic_id) for topic in wanted)
    outcomes: dict[tuple[str | None, bytes], DeletionOutcome] = {}
    for topic in wanted:
        key = (topic.name, topic.topic_id)
        if key in outcomes:
            continue
        try:
            if times[key] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name or id.")
            outcomes[key] = _plan_deletion(image, topic, deletions)
        except Refused as refused:
            outcomes[key] = DeletionOutcome(topic.name, topic.topic_id, refused.error, refused.message)
    return list(outcomes.values()), deletions


def _plan_deletion(image: ClusterImage, wanted: TopicToDelete, deletions: Deletions) -> DeletionOutcome:
    if wanted.name is not None and wanted.topic_id != ZERO_UUID:
        raise Refused(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if wanted.name is None and wanted.topic_id == ZERO_UUID:
        raise Refused(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if wanted.name is not None:
        topic = image.topics.get(wanted.name)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        topic = image.topics_by_id.get(wanted.topic_id)
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    if topic is None:
        raise Refused(missing, missing.message)
    if topic.name in deletions.removed:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"The provided topic name {topic.name} maps to an ID that was already supplied.",
        )
    deletions.removed[topic.name] = topic
    deletions.operations += removal_of(image, topic)
    return DeletionOutcome(topic.name, topic.topic_id)


def removal_of(image: ClusterImage, topic: TopicImage) -> list[Operation]:
    """The deletions of all nodes of a topic, children first."""
    operations: list[Operation] = []
    for partition in topic.partitions:
        if partition.partition_epoch >= 0:  # a creation that was cut short has no state
            operations.append(Delete(paths.partition_state(topic.name, partition.index)))
            operations.append(Delete(paths.partition(topic.name, partition.index)))
    operations.append(Delete(paths.partitions(topic.name)))
    operations.append(Delete(paths.topic(topic.name)))
    resource = ConfigResource(ConfigType.TOPIC, topic.name)
    if resource in image.configs:
        operations.append(Delete(resource.path))
    return operations

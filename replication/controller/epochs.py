"""Leader epochs at the start of a node that was its own controller. Pure.

After an unclean stop the tail of a log may be shorter than what readers saw, and a log may be gone wholly. A
higher leader epoch makes that visible: clients that fetched under the old epoch are told (74) and look for
the end offset of their epoch. Brokers that come back to a cluster get their epoch from an election instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from replication.controller.topic_creation import encode_state
from replication.metadata import paths
from replication.metadata.image import ClusterImage, PartitionImage, TopicImage
from replication.metadata.store import Create, Operation, Put


def complete_and_raise(
    image: ClusterImage, node_id: int, shortened: Callable[[str, int], bool]
) -> tuple[list[TopicImage], list[Operation]]:
    """The topics whose partitions change, and the writes.

    A partition without a state (its creation was cut short) gets one; a partition that this node leads, or
    led when it stopped and alone was in sync, gets a leader epoch higher by one where its log may be
    `shortened(topic, index)`; a partition without a leader whose last in-sync replica is this node is led by
    it again, always under a new epoch.
    """
    changed: list[TopicImage] = []
    operations: list[Operation] = []
    for topic in image.topics.values():
        partitions = list(topic.partitions)
        for partition in topic.partitions:
            after = _start(partition, node_id, shortened(topic.name, partition.index))
            if after is partition:
                continue
            partitions[partition.index] = after
            state = encode_state(after, image.controller_epoch)
            path = paths.partition_state(topic.name, partition.index)
            if partition.partition_epoch < 0:
                operations.append(Create(paths.partition(topic.name, partition.index), b""))
                operations.append(Create(path, state))
            else:
                operations.append(Put(path, state, partition.partition_epoch))
        if any(now is not before for now, before in zip(partitions, topic.partitions, strict=True)):
            changed.append(replace(topic, partitions=tuple(partitions)))
    return changed, operations


def _start(partition: PartitionImage, node_id: int, shortened: bool) -> PartitionImage:
    if partition.partition_epoch < 0:
        if node_id not in partition.replicas:
            return partition
        return replace(partition, leader=node_id, leader_epoch=0, partition_epoch=0, isr=(node_id,))
    returns = partition.leader < 0 and partition.isr == (node_id,)
    if returns or (shortened and partition.leader == node_id):
        return replace(
            partition,
            leader=node_id,
            leader_epoch=partition.leader_epoch + 1,
            partition_epoch=partition.partition_epoch + 1,
        )
    return partition

"""UpdateMetadata: what the controller tells every broker of the cluster becomes the next image.

The list of live brokers replaces the one before; partitions come one by one and replace what was known of
them; a partition whose leader is -2 is being deleted and goes, and a topic goes with its last one. The
controller's id is learnt from here and nowhere else. Configurations, features and cluster id come from the
store and stay. Leaders come by LeaderAndIsr, too, to those who have a replica, a moment earlier.

A partition may be told before one with a lower index. Until that one comes there is a gap, which shows as a
partition without replicas and without a leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from protocol import messages as m
from protocol.uuids import ZERO_UUID
from replication.metadata.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    EndpointImage,
    PartitionImage,
    TopicImage,
)

LEADER_DURING_DELETE = -2

SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}

_State: TypeAlias = m.UpdateMetadataRequest.UpdateMetadataPartitionState


Told = tuple[str, bytes, list[_State]]
"""Name and id of a topic, and what is told of its partitions."""


def updated(
    image: ClusterImage, request: m.UpdateMetadataRequest, topics: Mapping[str, TopicImage | None]
) -> ClusterImage:
    """The image after the request, with its `topics` as they are then; other ones are shared with `image`."""
    changed = [topic for topic in topics.values() if topic is not None]
    removed = [name for name, topic in topics.items() if topic is None and name in image.topics]
    if changed or removed:
        image = image.with_topics(changed, removed)
    return replace(
        image.with_brokers(_brokers(image, request)),
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
    )


def told_topics(request: m.UpdateMetadataRequest) -> list[Told]:
    """Topic by topic; before v5 each partition names its topic."""
    ungrouped: dict[str, list[_State]] = {}
    for state in request.ungrouped_partition_states:
        ungrouped.setdefault(state.topic_name, []).append(state)
    grouped = [(topic.topic_name, topic.topic_id, topic.partition_states) for topic in request.topic_states]
    return [*grouped, *((name, ZERO_UUID, states) for name, states in ungrouped.items())]


def updated_topic(image: ClusterImage, told: Told) -> TopicImage | None:
    """The topic with these partitions; None if none is left."""
    name, topic_id, states = told
    before = image.topics.get(name)
    known: dict[int, PartitionImage] = {}
    if before is not None and topic_id in (ZERO_UUID, before.topic_id):
        known = {partition.index: partition for partition in before.partitions if partition.replicas}
        topic_id = before.topic_id
    for state in states:
        if state.leader == LEADER_DURING_DELETE:
            known.pop(state.partition_index, None)
        else:
            known[state.partition_index] = _partition(state)
    if not known:
        return None
    partitions = tuple(known.get(index) or _gap(index) for index in range(max(known) + 1))
    return TopicImage(name, topic_id, partitions)


def led_topic(
    image: ClusterImage, name: str, topic_id: bytes, told: Iterable[PartitionImage]
) -> TopicImage | None:
    """The topic with those leaders that are alive and newer than what is known; None if there is none."""
    topic = image.topics.get(name)
    if topic is None or topic_id not in (ZERO_UUID, topic.topic_id):
        return None
    newer: dict[int, PartitionImage] = {}
    for state in told:
        known = topic.partitions[state.index] if state.index < len(topic.partitions) else None
        if known is not None and known.leader_epoch < state.leader_epoch and state.leader in image.brokers:
            newer[state.index] = replace(
                known,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                isr=state.isr,
            )
    if not newer:
        return None
    return replace(topic, partitions=tuple(newer.get(each.index, each) for each in topic.partitions))


def _partition(state: _State) -> PartitionImage:
    return PartitionImage(
        state.partition_index,
        state.leader,
        state.leader_epoch,
        state.zk_version,
        tuple(state.isr),
        tuple(state.replicas),
        offline=tuple(state.offline_replicas),
    )


def _gap(index: int) -> PartitionImage:
    return PartitionImage(index, NO_LEADER, -1, -1, (), ())


def _brokers(image: ClusterImage, request: m.UpdateMetadataRequest) -> dict[int, BrokerImage]:
    """The live brokers; one that is told as it is known stays the same object."""
    brokers: dict[int, BrokerImage] = {}
    for told in request.live_brokers:
        endpoints = {
            each.listener or SECURITY_PROTOCOLS[each.security_protocol]: EndpointImage(
                each.host, each.port, SECURITY_PROTOCOLS[each.security_protocol]
            )
            for each in told.endpoints
        }
        known = image.brokers.get(told.id)
        if known is not None and (known.endpoints, known.rack) == (endpoints, told.rack):
            brokers[told.id] = known
        else:
            epoch = known.epoch if known is not None else -1
            brokers[told.id] = BrokerImage(told.id, epoch, MappingProxyType(endpoints), told.rack)
    return brokers

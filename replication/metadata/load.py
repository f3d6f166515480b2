"""From the tree to the image: what a controller reads when it takes over.

A topic without partition states is a creation that was cut short; it is loaded with leader -1 and epoch -1
for each missing state, which the controller then completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from replication.metadata import paths, payloads
from replication.metadata.configs import ConfigResource, resource_at
from replication.metadata.features import read_features
from replication.metadata.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    EndpointImage,
    PartitionImage,
    TopicImage,
)
from replication.metadata.store import Node


def load_image(nodes: Mapping[str, Node], controller_id: int, controller_epoch: int) -> ClusterImage:
    """The image that a whole tree (`store.subtree("/")`) describes. Raises BadPayload for a damaged node."""
    cluster = nodes.get(paths.CLUSTER_ID)
    topics = read_topics(_below(nodes, paths.TOPICS))
    return ClusterImage(
        cluster_id="" if cluster is None else payloads.decode_cluster_id(paths.CLUSTER_ID, cluster.value),
        controller_id=controller_id,
        controller_epoch=controller_epoch,
        brokers=MappingProxyType(read_brokers(_below(nodes, paths.BROKER_IDS))),
        topics=MappingProxyType({topic.name: topic for topic in topics}),
        topics_by_id=MappingProxyType({topic.topic_id: topic for topic in topics}),
        configs=MappingProxyType(read_configs(_below(nodes, paths.CONFIG))),
        features=read_features(paths.FEATURES, nodes.get(paths.FEATURES)),
    )


def _below(nodes: Mapping[str, Node], path: str) -> dict[str, Node]:
    prefix = path + "/"
    return {at: node for at, node in nodes.items() if at.startswith(prefix)}


def read_topics(nodes: dict[str, Node]) -> list[TopicImage]:
    """The topics in the subtree of /brokers/topics, sorted by name. A topic without an id is left out:
    Kafka's controller gives it one before anybody uses it, and so must ours.
    """
    depth = paths.TOPICS.count("/") + 1
    topics: list[TopicImage] = []
    for path, node in nodes.items():
        if path.count("/") != depth:
            continue
        name = path.rpartition("/")[2]
        payload = payloads.decode_topic(path, node.value)
        if payload.topic_id is None:
            continue
        partitions = tuple(
            _read_partition(nodes, name, index, replicas, payload)
            for index, replicas in payload.assignment.items()
        )
        if [partition.index for partition in partitions] != list(range(len(partitions))) or not partitions:
            raise payloads.BadPayload(path, "its partitions are not 0, 1, 2 ...")
        topics.append(TopicImage(name, payload.topic_id, partitions))
    return topics


def _read_partition(
    nodes: dict[str, Node],
    name: str,
    index: int,
    replicas: tuple[int, ...],
    payload: payloads.TopicPayload,
) -> PartitionImage:
    path = paths.partition_state(name, index)
    adding, removing = payload.adding.get(index, ()), payload.removing.get(index, ())
    node = nodes.get(path)
    if node is None:
        return PartitionImage(index, NO_LEADER, -1, -1, (), replicas, adding, removing)
    state = payloads.decode_state(path, node.value)
    return PartitionImage(
        index,
        state.leader,
        state.leader_epoch,
        node.version,
        state.isr,
        replicas,
        adding,
        removing,
        state.recovering,
    )


def read_brokers(nodes: dict[str, Node]) -> dict[int, BrokerImage]:
    """The live brokers in the subtree of /brokers/ids, by ascending id."""
    brokers: dict[int, BrokerImage] = {}
    for path, node in nodes.items():
        broker_id = int(path.rpartition("/")[2])
        payload = payloads.decode_broker(path, node.value)
        endpoints = {
            name: EndpointImage(host, port, payload.protocols.get(name, name))
            for name, (host, port) in payload.endpoints.items()
        }
        brokers[broker_id] = BrokerImage(
            broker_id, node.created_id, endpoints, payload.rack, payload.features, payload.cordoned
        )
    return dict(sorted(brokers.items()))


def read_configs(nodes: dict[str, Node]) -> dict[ConfigResource, MappingProxyType[str, str]]:
    """The overrides in the subtree of /config. A node with an empty map (Kafka leaves such ones) is kept, so
    that `resource in image.configs` says whether there is a node.
    """
    configs: dict[ConfigResource, MappingProxyType[str, str]] = {}
    for path, node in nodes.items():
        resource = resource_at(path)
        if resource is not None:
            configs[resource] = MappingProxyType(payloads.decode_config(path, node.value))
    return configs

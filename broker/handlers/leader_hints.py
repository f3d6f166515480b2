"""Where the leader of a partition is, for answers that say "not here" (KIP-951: Produce v10+, Fetch v16+)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker.handlers.endpoints import brokers_with_listener
from replication.metadata.image import ClusterImage


class Endpoint(NamedTuple):
    """Where a broker is reached on the listener that the client came by."""

    node_id: int
    host: str
    port: int
    rack: str | None


def current_leader(image: ClusterImage, topic: str, topic_id: bytes, index: int) -> tuple[int, int] | None:
    """(leader id, leader epoch) of a partition named by name or id; None if it is unknown or has no
    leader.
    """
    found = image.topics.get(topic) if topic else image.topics_by_id.get(topic_id)
    if found is None or not 0 <= index < len(found.partitions):
        return None
    partition = found.partitions[index]
    return (partition.leader, partition.leader_epoch) if partition.leader >= 0 else None


def endpoints_of(image: ClusterImage, listener_name: str, node_ids: Iterable[int]) -> list[Endpoint]:
    """Addresses of these brokers, in the order of their ids; those without the listener are left out."""
    reachable = brokers_with_listener(image, listener_name)
    return [
        Endpoint(node_id, reachable[node_id][1].host, reachable[node_id][1].port, reachable[node_id][0].rack)
        for node_id in sorted(set(node_ids))
        if node_id in reachable
    ]

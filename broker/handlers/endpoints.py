"""Which brokers a client can reach: those that have the listener it came by, at that listener's address."""

from __future__ import annotations

from collections.abc import Mapping

from protocol.errors import ErrorCode
from replication.metadata.image import BrokerImage, ClusterImage, EndpointImage, PartitionImage


def brokers_with_listener(
    image: ClusterImage, listener_name: str
) -> dict[int, tuple[BrokerImage, EndpointImage]]:
    """Live brokers by id with their address on one listener."""
    return {
        broker.broker_id: (broker, endpoint)
        for broker in image.brokers.values()
        if (endpoint := broker.endpoints.get(listener_name)) is not None
    }


def leader_of(
    partition: PartitionImage, live: Mapping[int, object], reachable: Mapping[int, object]
) -> tuple[ErrorCode, int]:
    """The leader's id as a client may use it: -1 with error 5 where there is none, with 72 where it has no
    address on the client's listener.
    """
    if partition.leader not in live:
        return ErrorCode.LEADER_NOT_AVAILABLE, -1
    if partition.leader not in reachable:
        return ErrorCode.LISTENER_NOT_FOUND, -1
    return ErrorCode.NONE, partition.leader

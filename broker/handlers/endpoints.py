"""Which brokers a client can reach: those that have the listener it came by, at that listener's address; and
which replicas cannot be reached, because their broker or their disk is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from replication.metadata.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    EndpointImage,
    PartitionImage,
    TopicImage,
)

if TYPE_CHECKING:
    from broker.context import BrokerContext


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


def with_offline_replicas(
    ctx: BrokerContext, topic: TopicImage, begin: int = 0, end: int | None = None
) -> Iterator[tuple[PartitionImage, list[int]]]:
    """A topic's partitions as clients see them, and which of their replicas are offline.

    A replica of this broker whose log directory failed leads nothing and is in sync with nobody. A partition
    of which this broker was not told is left out, as Kafka's brokers do.
    """
    live, me, any_offline = ctx.image.brokers, ctx.node_id, ctx.replicas.any_offline
    for partition in topic.partitions[begin:end]:
        if not partition.replicas:
            continue
        offline = [each for each in partition.replicas if each not in live or each in partition.offline]
        if (
            any_offline
            and me in partition.replicas
            and me not in offline
            and ctx.replicas.is_offline(topic.name, partition.index)
        ):
            partition = replace(
                partition,
                leader=NO_LEADER if partition.leader == me else partition.leader,
                isr=tuple(broker for broker in partition.isr if broker != me),
            )
            offline.append(me)
        yield partition, offline

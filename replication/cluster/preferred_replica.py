"""Fetch from the nearest replica (KIP-392): where a consumer in some rack should rather read.

With replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector a leader sends consumers
to an in-sync follower in their own rack that has the offset they read from. Is the leader in that rack, or
nobody, the leader serves. Among several the one that is furthest wins, then the one that was caught up last,
then the greatest id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from replication.fetch import Redirect
from replication.metadata.image import BrokerImage
from replication.partition import Partition

NO_REPLICA = -1
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

Brokers = Callable[[], Mapping[int, BrokerImage]]


def rack_aware(rack: str, listener: str, brokers: Brokers) -> Redirect | None:
    """The choice for a consumer of `rack` that came by that listener; None where it has no rack."""
    if not rack:
        return None

    def choose(partition: Partition, offset: int) -> int:
        return nearest(partition, offset, rack, listener, brokers())

    return choose


def nearest(
    partition: Partition, offset: int, rack: str, listener: str, brokers: Mapping[int, BrokerImage]
) -> int:
    """The follower to read from; -1 where the leader should serve."""
    leadership = partition.leadership
    own = brokers.get(partition.leader_id)
    if leadership is None or (own is not None and own.rack == rack):
        return NO_REPLICA
    best: tuple[int, int, int] | None = None
    for broker_id, follower in leadership.followers.items():
        broker = brokers.get(broker_id)
        if broker is None or broker.rack != rack or listener not in broker.endpoints:
            continue
        if broker_id in partition.isr and follower.log_start_offset <= offset <= follower.end_offset:
            candidate = (follower.end_offset, follower.caught_up_ms, broker_id)
            best = candidate if best is None else max(best, candidate)
    return NO_REPLICA if best is None else best[2]

"""What the handlers of requests between brokers work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replication.cluster.channel import Channels
    from replication.cluster.leader_and_isr import LeaderAndIsr
    from replication.cluster.replica_reads import ReplicaReads
    from replication.cluster.stop_replica import StopReplica
    from replication.cluster.store_changes import StoreChanges
    from replication.cluster.stored_topics import StoredTopics
    from replication.cluster.update_metadata import UpdateMetadata
    from replication.controller.cluster_admin import ClusterAdmin


@dataclass(slots=True, frozen=True)
class ClusterServices:
    """One bundle for a broker in a cluster, made once at start."""

    leader_and_isr: LeaderAndIsr
    stop_replica: StopReplica
    update_metadata: UpdateMetadata
    admin: ClusterAdmin
    changes: StoreChanges
    stored_topics: StoredTopics
    reads: ReplicaReads
    channels: Channels

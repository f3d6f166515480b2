"""The ends of partitions, for the lag of share groups."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.partition import Partition
from replication.replica_manager import ReplicaManager


class ReplicaLatestOffsets:
    """coordinator.group.share.ports.LatestOffsets over the partitions of this broker."""

    def __init__(self, replicas: ReplicaManager) -> None:
        self._replicas = replicas

    def latest(self, topic: str, partition: int) -> int | ErrorCode:
        """The high watermark of a partition that this broker leads."""
        found = self._replicas.find(topic, partition)
        return found.log.high_watermark if isinstance(found, Partition) else found

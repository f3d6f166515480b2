"""A broker that is about to stop gives its leaderships away and leaves the sets in sync (KIP-188, KIP-841).

Until its registration goes it counts as shutting down: it may not lead, nor be added to a set in sync.
Partitions with one replica stay with it; they are not among those that it is told it still leads.
"""

from __future__ import annotations

import logging

from protocol.errors import ErrorCode
from replication.controller.cluster_state import Replica, TopicPartition
from replication.controller.elections import Strategy
from replication.controller.office import Office
from replication.controller.partition_states import PartitionMachine
from replication.controller.replica_states import ReplicaMachine
from replication.controller.states import ReplicaState

_log = logging.getLogger(__name__)

UNKNOWN_BROKER_EPOCH = -1


class Shutdowns:
    """Controlled shutdowns."""

    def __init__(self, office: Office, partitions: PartitionMachine, replicas: ReplicaMachine) -> None:
        self._office = office
        self._state = office.state
        self._partitions = partitions
        self._replicas = replicas

    async def shut_down(self, broker: int, broker_epoch: int) -> tuple[ErrorCode, list[TopicPartition]]:
        """Move away what can be moved. Returns the partitions with several replicas that the broker still
        leads; it asks again until there is none, or stops anyway.
        """
        known = self._state.brokers.get(broker)
        if known is None:
            return ErrorCode.BROKER_NOT_AVAILABLE, []
        if broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < known.epoch:
            return ErrorCode.STALE_BROKER_EPOCH, []
        _log.info("Broker %d is shutting down", broker)
        self._state.shutting_down[broker] = None
        led, followed = self._affected(broker)
        await self._partitions.elect(led, Strategy.CONTROLLED_SHUTDOWN)
        batch = self._office.batch()
        for partition in followed:
            batch.stop_replica(broker, partition, delete=False)
        await self._office.send(batch)
        await self._replicas.move([Replica(p, broker) for p in followed], ReplicaState.OFFLINE)
        return ErrorCode.NONE, [p for p in self._state.led_by(broker) if self._counts(p)]

    def _affected(self, broker: int) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """The partitions that the broker leads and those that it follows."""
        led: list[TopicPartition] = []
        followed: list[TopicPartition] = []
        for partition in self._state.partitions_on(broker):
            if self._counts(partition):
                leads = self._state.leaderships[partition].leader == broker
                (led if leads else followed).append(partition)
        return led, followed

    def _counts(self, partition: TopicPartition) -> bool:
        return (
            partition in self._state.leaderships
            and len(self._state.assignment(partition).replicas) > 1
            and not self._state.is_going(partition.topic)
        )

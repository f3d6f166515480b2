"""Replicas change their state, and their brokers hear of it.

New and Online send LeaderAndIsr to the replica, Offline stops it, takes it out of the set in sync and tells
the other replicas, DeletionStarted has it removed from the disk. The other states are marks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from replication.controller.batches import RequestBatch
from replication.controller.cluster_state import Leadership, Replica, TopicPartition
from replication.controller.office import Office
from replication.controller.partition_states import refreshed
from replication.controller.slices import slices
from replication.controller.states import REPLICA_PREDECESSORS, ReplicaState

_log = logging.getLogger(__name__)


class ReplicaMachine:
    """The one place that changes replica states."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._state = office.state

    async def start(self) -> None:
        """The states at the beginning of an epoch: online replicas are told, the others leave the sets in
        sync. A replica whose broker is down counts as one that could not be deleted.
        """
        online: list[Replica] = []
        offline: list[Replica] = []
        async for part in slices(self._state.replicas_of(self._state.all_partitions())):
            for replica in part:
                if self._state.is_online(replica.broker, replica.partition):
                    self._state.replica_states[replica] = ReplicaState.ONLINE
                    online.append(replica)
                else:
                    self._state.replica_states[replica] = ReplicaState.DELETION_INELIGIBLE
                    offline.append(replica)
        await self.move(online, ReplicaState.ONLINE)
        await self.move(offline, ReplicaState.OFFLINE)

    async def move(self, replicas: Iterable[Replica], target: ReplicaState) -> None:
        """Change the state of those that may enter it, as one batch of requests."""
        legal = self._legal(replicas, target)
        if not legal:
            return
        batch = self._office.batch()
        match target:
            case ReplicaState.NEW:
                await self._to_new(legal, batch)
            case ReplicaState.ONLINE:
                await self._to_online(legal, batch)
            case ReplicaState.OFFLINE:
                await self._to_offline(legal, batch)
            case ReplicaState.DELETION_STARTED:
                for replica in legal:
                    self._state.replica_states[replica] = target
                    batch.stop_replica(replica.broker, replica.partition, delete=True)
            case ReplicaState.NON_EXISTENT:
                for replica in legal:
                    self._state.assign(
                        replica.partition, self._state.assignment(replica.partition).without(replica.broker)
                    )
                    self._state.replica_states.pop(replica, None)
            case _:
                for replica in legal:
                    self._state.replica_states[replica] = target
        await self._office.send(batch)

    def _legal(self, replicas: Iterable[Replica], target: ReplicaState) -> list[Replica]:
        legal: list[Replica] = []
        for replica in replicas:
            at = self._state.replica_state(replica)
            if at in REPLICA_PREDECESSORS[target]:
                legal.append(replica)
            else:
                _log.error(
                    "Replica %d of %s cannot go from %s to %s",
                    replica.broker,
                    replica.partition,
                    at.value,
                    target.value,
                )
        return legal

    async def _to_new(self, replicas: Sequence[Replica], batch: RequestBatch) -> None:
        async for part in slices(replicas):
            for replica in part:
                known = self._state.leaderships.get(replica.partition)
                if known is not None and known.leader == replica.broker:
                    _log.error("Replica %d of %s leads and cannot be new", replica.broker, replica.partition)
                    continue
                if known is not None:
                    batch.leader_and_isr([replica.broker], replica.partition, is_new=True)
                self._state.replica_states[replica] = ReplicaState.NEW

    async def _to_online(self, replicas: Sequence[Replica], batch: RequestBatch) -> None:
        async for part in slices(replicas):
            for replica in part:
                is_told = self._state.replica_state(replica) is not ReplicaState.NEW
                if is_told and replica.partition in self._state.leaderships:
                    batch.leader_and_isr([replica.broker], replica.partition, is_new=False)
                self._state.replica_states[replica] = ReplicaState.ONLINE

    async def _to_offline(self, replicas: Sequence[Replica], batch: RequestBatch) -> None:
        by_broker: dict[int, list[TopicPartition]] = {}
        async for part in slices(replicas):
            for replica in part:
                batch.stop_replica(replica.broker, replica.partition, delete=False)
                by_broker.setdefault(replica.broker, []).append(replica.partition)
        for broker, partitions in by_broker.items():
            led = [partition for partition in partitions if partition in self._state.leaderships]
            async for removed in slices(await self._removed_from_isr(broker, led)):
                for partition in removed:
                    if not self._state.is_going(partition.topic):
                        others = [b for b in self._state.assignment(partition).replicas if b != broker]
                        batch.leader_and_isr(others, partition, is_new=False)
                    self._state.replica_states[Replica(partition, broker)] = ReplicaState.OFFLINE
            for partition in partitions:
                if partition not in self._state.leaderships:
                    batch.update_metadata(self._state.reachable, [partition])
                    self._state.replica_states[Replica(partition, broker)] = ReplicaState.OFFLINE

    async def _removed_from_isr(
        self, broker: int, partitions: Sequence[TopicPartition]
    ) -> list[TopicPartition]:
        """Take the broker out of the sets in sync; returns the partitions in whose set it is not any more (or
        is the last member). Those whose state cannot be written are left out.
        """
        removed: list[TopicPartition] = []
        remaining: Sequence[TopicPartition] = partitions
        leaderships = self._state.leaderships
        while remaining:
            wanted: dict[TopicPartition, Leadership] = {}
            async for part in slices(remaining):
                for partition in part:
                    known = leaderships[partition]
                    after = known.without(broker) if broker in known.isr else known
                    if (after.leader, after.isr) == (known.leader, known.isr):
                        removed.append(partition)
                    else:
                        wanted[partition] = after
            written = await self._office.ledger.put_leaderships(wanted)
            leaderships.update(written.done)
            removed += written.done
            remaining = await refreshed(self._office, written.conflicts)
        return removed

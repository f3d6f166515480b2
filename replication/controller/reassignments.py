"""Partitions move to other brokers (KIP-455): new replicas are added, catch up, and the old ones are removed.

What is wanted is written to the topic's node first, so that whoever is the controller can go on from there.
Then, as long as not all target replicas are in sync (phase A), all replicas hear of the wanted assignment and
the new ones start. When they are (phase B), a target replica leads, the old replicas leave the set in sync,
are stopped and removed, and last the topic's node names the target alone; until then the origin is still
known, and a controller that dies in between leaves all that is needed to finish.

Progress is looked at after every change of the set in sync, when a target's broker starts, and at failover. A
target that is down is waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from replication.controller.assignment import Assignment, encode_assignments
from replication.controller.cluster_state import ControllerState, Replica, TopicPartition
from replication.controller.deletions import Deletions
from replication.controller.elections import Strategy
from replication.controller.legacy_reassignment import LegacyReassignment
from replication.controller.office import Office
from replication.controller.partition_states import PartitionMachine, refreshed
from replication.controller.replica_states import ReplicaMachine
from replication.controller.states import ReplicaState
from replication.metadata import paths
from replication.metadata.store import Put

_log = logging.getLogger(__name__)


class Reassignments:
    """The partitions that are being reassigned."""

    def __init__(
        self,
        office: Office,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        deletions: Deletions,
        legacy: LegacyReassignment,
    ) -> None:
        self._office = office
        self._state = office.state
        self._partitions = partitions
        self._replicas = replicas
        self._deletions = deletions
        self._legacy = legacy

    async def reassign(self, partition: TopicPartition, wanted: Assignment) -> None:
        """Begin, go on with, replace or cancel the reassignment of a partition, as far as it goes now."""
        self._deletions.hold([partition.topic])
        await self._update(partition, wanted)
        if self._is_complete(partition, wanted):
            await self._finish(partition, wanted)
            return
        await self._raise_epoch(partition, wanted)
        for broker in wanted.adding:
            replica = Replica(partition, broker)
            if self._state.replica_state(replica) is ReplicaState.NON_EXISTENT:
                await self._replicas.move([replica], ReplicaState.NEW)

    async def resume(self, which: Callable[[TopicPartition, Assignment], bool]) -> None:
        """Go on with those that `which` chooses."""
        for partition in list(self._state.reassigning):
            assignment = self._state.assignment(partition)
            if which(partition, assignment):
                await self.reassign(partition, assignment)

    async def complete_if_caught_up(self, partition: TopicPartition) -> None:
        """The set in sync of a partition has changed."""
        if partition not in self._state.reassigning:
            return
        assignment = self._state.assignment(partition)
        if self._is_complete(partition, assignment):
            _log.info("The target replicas %s of %s have caught up", assignment.target, partition)
            await self.reassign(partition, assignment)

    async def resume_legacy(self) -> list[TopicPartition]:
        """Begin what /admin/reassign_partitions asks for; returns the partitions that it names rightly."""
        begun: list[TopicPartition] = []
        failed: dict[TopicPartition, None] = {}
        for partition, target in (await self._legacy.read()).items():
            if partition.topic in self._state.deleting or not self._state.assignment(partition).replicas:
                failed[partition] = None
                continue
            wanted = self._state.assignment(partition).towards(target)
            if loses_all_in_sync(self._state, partition, wanted):
                failed[partition] = None
                continue
            begun.append(partition)
            await self.reassign(partition, wanted)
        if failed:
            await self._legacy.forget(lambda partition, _: partition in failed)
        return begun

    def _is_complete(self, partition: TopicPartition, wanted: Assignment) -> bool:
        if not wanted.reassigning:
            return True
        known = self._state.leaderships.get(partition)
        if known is None or not all(broker in known.isr for broker in wanted.target):
            return False
        # Kafka goes on though no target can lead, and takes the others away: then nobody leads.
        return any(self._state.is_online(broker, partition) for broker in wanted.target)

    async def _update(self, partition: TopicPartition, wanted: Assignment) -> None:
        """Phase U: the store, then memory. Replicas that an earlier target had and this one has not go before
        that: Kafka has them go after it, and a controller that dies in between leaves them in the set in sync
        and on their disks.
        """
        before = self._state.assignment(partition)
        if before != wanted:
            await self._remove(partition, [b for b in before.replicas if b not in wanted.replicas])
            await self._store(partition, wanted)
            self._state.assign(partition, wanted)
        self._state.reassigning[partition] = None

    async def _finish(self, partition: TopicPartition, wanted: Assignment) -> None:
        """Phase B."""
        added = [Replica(partition, broker) for broker in wanted.adding]
        await self._replicas.move(added, ReplicaState.ONLINE)
        done = Assignment(wanted.target)
        self._state.assign(partition, done)
        await self._lead_from(partition, done)
        await self._remove(partition, wanted.removing)
        await self._store(partition, done)
        await self._legacy.forget(lambda other, target: other == partition and target == done.replicas)
        self._state.reassigning.pop(partition, None)
        await self._office.update_metadata(self._state.reachable, [partition])
        _log.info("Partition %s is reassigned to %s", partition, done.replicas)
        await self._deletions.resume([partition.topic])

    async def _lead_from(self, partition: TopicPartition, done: Assignment) -> None:
        """A target replica leads, under a new epoch in any case: all must hear of the new assignment."""
        leader = self._state.leaderships[partition].leader
        if leader in done.replicas and self._state.is_online(leader, partition):
            await self._raise_epoch(partition, done)
        else:
            await self._partitions.elect([partition], Strategy.REASSIGN)

    async def _raise_epoch(self, partition: TopicPartition, wanted: Assignment) -> None:
        """Write the next leader epoch with the same leader, and tell all replicas of the assignment."""
        remaining = [partition] if partition in self._state.leaderships else []
        while remaining:
            known = self._state.leaderships[partition]
            written = await self._office.ledger.put_leaderships({partition: known.led_by(known.leader)})
            if written.done:
                self._state.leaderships.update(written.done)
                batch = self._office.batch()
                batch.leader_and_isr(wanted.origin, partition, is_new=False)
                batch.leader_and_isr(wanted.adding, partition, is_new=True)
                await self._office.send(batch)
                return
            remaining = await refreshed(self._office, written.conflicts)

    async def _remove(self, partition: TopicPartition, brokers: Sequence[int]) -> None:
        """Stop replicas and have them removed. Their answers are not waited for, as in Kafka: the files of
        one whose broker is down stay there.
        """
        replicas = [Replica(partition, broker) for broker in brokers]
        for state in (
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        ):
            await self._replicas.move(replicas, state)

    async def _store(self, partition: TopicPartition, wanted: Assignment) -> None:
        """Write the topic's node with this assignment of the partition."""
        assignments = {**self._state.assignments[partition.topic], partition.partition: wanted}
        value = encode_assignments(self._state.topic_ids[partition.topic], assignments)
        await self._office.ledger.write([Put(paths.topic(partition.topic), value)])


def loses_all_in_sync(state: ControllerState, partition: TopicPartition, wanted: Assignment) -> bool:
    """Whether every replica in sync would be removed at once. A reassignment that is cancelled or replaced
    while only replicas that it added are in sync would lose what they alone have. Pure.
    """
    known = state.leaderships.get(partition)
    return known is not None and all(member not in wanted.replicas for member in known.isr)

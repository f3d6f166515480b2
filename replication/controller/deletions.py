"""Topics are deleted: queued by a marker in the store, stopped and removed on every broker, then forgotten.

A topic is not deleted while one of its replicas is offline or one of its partitions reassigned; it stays
queued, its clients see it gone as soon as the deletion has begun, and the deletion goes on when the broker is
back or the reassignment has ended. The nodes of the topic go last, and of them the marker: whatever is
interrupted is found again by the next controller.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from replication.controller.cluster_state import Replica, TopicPartition
from replication.controller.ledger import OPERATIONS_PER_TRANSACTION
from replication.controller.office import Office
from replication.controller.partition_states import PartitionMachine
from replication.controller.replica_states import ReplicaMachine
from replication.controller.states import PartitionState, ReplicaState
from replication.metadata import paths
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.store import Delete, NoNode, Operation

_log = logging.getLogger(__name__)


class Deletions:
    """The topics that are being deleted."""

    def __init__(self, office: Office, partitions: PartitionMachine, replicas: ReplicaMachine) -> None:
        self._office = office
        self._state = office.state
        self._partitions = partitions
        self._replicas = replicas

    async def start(self, marked: Iterable[str]) -> None:
        """Take over the topics that are marked, at the beginning of an epoch, before the machines start."""
        if not self._office.settings.delete_topics:
            await self.unmark(marked)
            return
        reassigned = dict.fromkeys(partition.topic for partition in self._state.reassigning)
        for topic in marked:
            self._state.deleting[topic] = None
            replicas = self._state.replicas_of_topic(topic)
            if topic in reassigned or not all(self._state.is_online(r.broker, r.partition) for r in replicas):
                self._state.deletion_ineligible[topic] = None

    async def on_markers(self) -> None:
        """Markers have appeared, or gone."""
        marked = await self._office.ledger.children(paths.DELETE_TOPICS)
        unknown = [t for t in marked if t not in self._state.assignments and t not in self._state.deleting]
        await self.unmark(unknown)
        known = [topic for topic in marked if topic in self._state.assignments]
        if not self._office.settings.delete_topics:
            await self.unmark(known)
            return
        for topic in known:
            self._state.deleting[topic] = None
            if any(partition.topic == topic for partition in self._state.reassigning):
                self.hold([topic])
        await self.go_on()

    def hold(self, topics: Iterable[str]) -> None:
        """Do not delete these of the queued topics before `resume` names them."""
        for topic in topics:
            if topic in self._state.deleting:
                self._state.deletion_ineligible[topic] = None

    async def resume(self, topics: Iterable[str]) -> None:
        """What held these topics is over: a broker is back, a reassignment has ended."""
        queued = [topic for topic in dict.fromkeys(topics) if topic in self._state.deleting]
        for topic in queued:
            self._state.deletion_ineligible.pop(topic, None)
        if queued:
            await self.go_on()

    async def failed(self, replicas: Iterable[Replica]) -> None:
        """These replicas could not be deleted."""
        failed = [
            replica
            for replica in replicas
            if replica.partition.topic in self._state.deleting
            and self._state.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL
        ]
        if failed:
            await self._give_up(failed)
            await self.go_on()

    async def succeeded(self, replicas: Iterable[Replica]) -> None:
        """These replicas are deleted."""
        done = [
            replica
            for replica in replicas
            if replica.partition.topic in self._state.deleting
            and self._state.replica_state(replica) is ReplicaState.DELETION_STARTED
        ]
        await self._replicas.move(done, ReplicaState.DELETION_SUCCESSFUL)
        await self.go_on()

    async def go_on(self) -> None:
        """Do for each queued topic what can be done now."""
        begin: list[str] = []
        for topic in list(self._state.deleting):
            if self._all_deleted(topic):
                await self._complete(topic)
            elif not self._state.replicas_in(topic, ReplicaState.DELETION_STARTED):
                failed = self._state.replicas_in(topic, ReplicaState.DELETION_INELIGIBLE)
                await self._replicas.move(failed, ReplicaState.OFFLINE)
                if topic not in self._state.deletion_ineligible and self._state.is_going(topic):
                    begin.append(topic)
        if begin:
            await self._begin(begin)

    async def unmark(self, topics: Iterable[str]) -> None:
        """Remove markers; one that is gone already is fine."""
        for topic in topics:
            await self._delete([Delete(f"{paths.DELETE_TOPICS}/{topic}")])

    async def _give_up(self, replicas: Sequence[Replica]) -> None:
        """Wait for something to happen that allows another try."""
        states = (ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED)
        tried = [replica for replica in replicas if self._state.replica_state(replica) in states]
        await self._replicas.move(tried, ReplicaState.DELETION_INELIGIBLE)
        self.hold(replica.partition.topic for replica in replicas)

    def _all_deleted(self, topic: str) -> bool:
        replicas = self._state.replicas_of_topic(topic)
        return all(self._state.replica_state(r) is ReplicaState.DELETION_SUCCESSFUL for r in replicas)

    async def _begin(self, topics: Iterable[str]) -> None:
        """Tell everybody that the topics are gone, then stop and remove the replicas that are online."""
        partitions: list[TopicPartition] = []
        for topic in topics:
            _log.info("Deletion of topic %s begins", topic)
            own = self._state.partitions_of(topic)
            partitions += own
            if topic not in self._state.deletion_started:
                self._partitions.mark(own, PartitionState.OFFLINE)
                self._partitions.mark(own, PartitionState.NON_EXISTENT)
                self._state.deletion_started[topic] = None
        await self._office.update_metadata(self._state.reachable, partitions)
        dead: list[Replica] = []
        alive: list[Replica] = []
        for replica in self._state.replicas_of(partitions):
            if self._state.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                online = self._state.is_online(replica.broker, replica.partition)
                (alive if online else dead).append(replica)
        await self._give_up(dead)
        await self._replicas.move(alive, ReplicaState.OFFLINE)
        await self._replicas.move(alive, ReplicaState.DELETION_STARTED)

    async def _complete(self, topic: str) -> None:
        await self._replicas.move(self._state.replicas_of_topic(topic), ReplicaState.NON_EXISTENT)
        root = paths.topic(topic)
        nodes = await self._office.ledger.subtree(root)
        config, marker = ConfigResource(ConfigType.TOPIC, topic).path, f"{paths.DELETE_TOPICS}/{topic}"
        operations: list[Operation] = [
            Delete(path) for path in (*sorted(nodes, reverse=True), root, config, marker)
        ]
        for first in range(0, len(operations), OPERATIONS_PER_TRANSACTION):
            await self._delete(operations[first : first + OPERATIONS_PER_TRANSACTION])
        self._state.remove_topic(topic)
        _log.info("Deletion of topic %s is complete", topic)

    async def _delete(self, operations: list[Operation]) -> None:
        """All of them; what is gone already is left out."""
        remaining = list(operations)
        while remaining:
            try:
                await self._office.ledger.write(remaining)
                return
            except NoNode as missing:
                del remaining[missing.operation_index]

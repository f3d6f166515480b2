"""Brokers come, go and come back: leaders are moved away from those that went, replicas told to those that
came.

A broker that was away for so short a time that its registration was never seen to be missing shows by its
epoch, which is then a later one: it is treated as gone and come in one event.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from replication.controller.cluster_state import Replica
from replication.controller.deletions import Deletions
from replication.controller.office import Office
from replication.controller.partition_states import PartitionMachine
from replication.controller.reassignments import Reassignments
from replication.controller.replica_states import ReplicaMachine
from replication.controller.states import PartitionState, ReplicaState
from replication.metadata.image import BrokerImage

_log = logging.getLogger(__name__)


class BrokerChanges:
    """The comings and goings of brokers and of their log directories."""

    def __init__(
        self,
        office: Office,
        partitions: PartitionMachine,
        replicas: ReplicaMachine,
        deletions: Deletions,
        reassignments: Reassignments,
    ) -> None:
        self._office = office
        self._state = office.state
        self._partitions = partitions
        self._replicas = replicas
        self._deletions = deletions
        self._reassignments = reassignments

    async def on_registrations(self, now: Mapping[int, BrokerImage]) -> None:
        """These brokers are registered now."""
        known = self._state.brokers
        came = [broker for broker in sorted(now) if broker not in known]
        bounced = [b for b in sorted(now) if b in known and now[b].epoch > known[b].epoch]
        went = [broker for broker in sorted(known) if broker not in now]
        if came or bounced or went:
            _log.info("Brokers that came: %s, went: %s, went and came: %s", came, went, bounced)
        await self._start({broker: now[broker] for broker in came})
        await self._fail(bounced)
        await self._start({broker: now[broker] for broker in bounced})
        await self._fail(went)
        await self._on_endpoints(now)

    async def on_lost_directories(
        self, broker: int, lost: Iterable[Replica], kept: Iterable[Replica]
    ) -> None:
        """A broker has answered which of its replicas are on a failed directory; what it serves again may
        lead where nobody else can.
        """
        before = self._state.offline_dirs.setdefault(broker, {})
        back = [replica.partition for replica in kept if replica.partition in before]
        for partition in back:
            del before[partition]
        new = [replica for replica in lost if replica.partition not in before]
        before.update(dict.fromkeys(replica.partition for replica in new))
        if new:
            _log.info("Broker %d has %d replica(s) on failed directories", broker, len(new))
            await self._replicas_went(new)
        if back:
            await self._partitions.bring_online()

    async def ask_for_directories(self, brokers: Iterable[int]) -> None:
        """Brokers say that they lost a directory: have them tell which replicas they still serve."""
        replicas = [replica for broker in brokers for replica in self._state.replicas_on(broker)]
        await self._replicas.move(replicas, ReplicaState.ONLINE)

    async def _on_endpoints(self, now: Mapping[int, BrokerImage]) -> None:
        """Brokers may be reached at other addresses, or take no new partitions, with the registration they
        have.
        """
        before = {b: self._state.brokers[b] for b in now}
        self._state.brokers.update(now)
        if any(broker.endpoints != before[b].endpoints for b, broker in now.items()):
            await self._office.update_metadata(self._state.reachable)

    async def _start(self, brokers: Mapping[int, BrokerImage]) -> None:
        if not brokers:
            return
        state = self._state
        old = state.reachable
        for broker, registered in brokers.items():
            state.brokers[broker] = registered
            state.offline_dirs.pop(broker, None)
        await self._office.update_metadata(old)
        await self._office.update_metadata(brokers, state.leaderships)
        replicas = [replica for broker in brokers for replica in state.replicas_on(broker)]
        await self._replicas.move(
            [r for r in replicas if state.replica_state(r) is not ReplicaState.DELETION_SUCCESSFUL],
            ReplicaState.ONLINE,
        )
        await self._partitions.bring_online()
        await self._reassignments.resume(lambda _, assignment: any(b in brokers for b in assignment.target))
        await self._deletions.resume(replica.partition.topic for replica in replicas)

    async def _fail(self, brokers: Sequence[int]) -> None:
        if not brokers:
            return
        state = self._state
        for broker in brokers:
            self._office.drop(broker)
            state.brokers.pop(broker)
            state.offline_dirs.pop(broker, None)
            state.shutting_down.pop(broker, None)
        await self._replicas_went([replica for broker in brokers for replica in state.replicas_on(broker)])

    async def _replicas_went(self, replicas: Sequence[Replica]) -> None:
        state = self._state
        deleted = [replica for replica in replicas if state.is_going(replica.partition.topic)]
        others = [replica for replica in replicas if not state.is_going(replica.partition.topic)]
        self._partitions.mark(state.with_offline_leader(), PartitionState.OFFLINE)
        elected = await self._partitions.bring_online()
        await self._replicas.move(others, ReplicaState.OFFLINE)
        await self._deletions.failed(deleted)
        if not others and not elected:
            await self._office.update_metadata(state.reachable)

"""Partitions change their state: New, Online (a leader is made or chosen), Offline, NonExistent.

A leader is chosen on what the controller knows; the write is conditional on the partition epoch, and when
somebody else has written meanwhile the state is read and the choice made again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from replication.controller import elections
from replication.controller.batches import RequestBatch
from replication.controller.cluster_state import ControllerState, Leadership, TopicPartition
from replication.controller.elections import Elected, Strategy
from replication.controller.office import Office
from replication.controller.slices import slices
from replication.controller.states import PARTITION_PREDECESSORS, PartitionState

_log = logging.getLogger(__name__)


class PartitionMachine:
    """The one place that changes partition states."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._state = office.state

    def start(self) -> None:
        """The states at the beginning of an epoch, from what is stored and who is alive."""
        state = self._state
        for partition in state.all_partitions():
            known = state.leaderships.get(partition)
            if known is None:
                state.partition_states[partition] = PartitionState.NEW
            elif state.is_online(known.leader, partition):
                state.partition_states[partition] = PartitionState.ONLINE
            else:
                state.partition_states[partition] = PartitionState.OFFLINE

    def mark(self, partitions: Iterable[TopicPartition], target: PartitionState) -> None:
        """Move to a state that is only a mark: New, Offline, NonExistent."""
        assert target is not PartitionState.ONLINE
        for partition in self._legal(partitions, target):
            self._state.partition_states[partition] = target

    async def bring_online(self, topic: str | None = None) -> list[TopicPartition]:
        """Try to find leaders for all New and Offline partitions (of a topic), except those of topics that
        are deleted. Returns those that were Offline and have one now.
        """
        waiting = [
            partition
            for partition, at in self._state.partition_states.items()
            if at in (PartitionState.NEW, PartitionState.OFFLINE)
            and not self._state.is_going(partition.topic)
            and topic in (None, partition.topic)
        ]
        return await self.elect(waiting, Strategy.OFFLINE)

    async def elect(
        self, partitions: Iterable[TopicPartition], strategy: Strategy, *, unclean: bool = False
    ) -> list[TopicPartition]:
        """Move to Online: New ones get their first leader, the others the one of `strategy`. `unclean` allows
        unclean leaders whatever the configuration says. Returns those that were not New and got a leader.
        """
        legal = self._legal(partitions, PartitionState.ONLINE)
        if not legal:
            return []
        states, batch = self._state.partition_states, self._office.batch()
        new = [partition for partition in legal if states[partition] is PartitionState.NEW]
        others = [partition for partition in legal if states[partition] is not PartitionState.NEW]
        await self._initialize(new, batch)
        elected = await self._choose(others, strategy, unclean, batch)
        await self._office.send(batch)
        return elected

    def _legal(self, partitions: Iterable[TopicPartition], target: PartitionState) -> list[TopicPartition]:
        legal: list[TopicPartition] = []
        for partition in partitions:
            at = self._state.partition_states.setdefault(partition, PartitionState.NON_EXISTENT)
            if at in PARTITION_PREDECESSORS[target]:
                legal.append(partition)
            else:
                _log.error("Partition %s cannot go from %s to %s", partition, at.value, target.value)
        return legal

    async def _initialize(self, partitions: Sequence[TopicPartition], batch: RequestBatch) -> None:
        """The first leader is the first online replica, in sync are all online ones."""
        first: dict[TopicPartition, Leadership] = {}
        for partition in partitions:
            replicas = self._state.assignment(partition).replicas
            online = tuple(broker for broker in replicas if self._state.is_online(broker, partition))
            if online:
                first[partition] = Leadership(online[0], 0, online, 0, self._state.epoch)
            else:
                _log.error(
                    "Partition %s has no leader: none of its replicas %s is alive", partition, replicas
                )
        if not first:
            return
        written = await self._office.ledger.create_leaderships(first)
        for partition in written.failed:
            _log.error("The state of partition %s cannot be created", partition)
        async for part in slices(written.done.items()):
            for partition, leadership in part:
                self._state.leaderships[partition] = leadership
                self._state.partition_states[partition] = PartitionState.ONLINE
                batch.leader_and_isr(leadership.isr, partition, is_new=True)

    async def _choose(
        self, partitions: Sequence[TopicPartition], strategy: Strategy, unclean: bool, batch: RequestBatch
    ) -> list[TopicPartition]:
        elected: list[TopicPartition] = []
        remaining: Sequence[TopicPartition] = partitions
        while remaining:
            allowed = await self._unclean_topics(remaining, strategy, unclean)
            chosen: dict[TopicPartition, Elected] = {}
            async for part in slices(remaining):
                for partition in part:
                    choice = choose(self._state, partition, strategy, allowed.get(partition.topic, False))
                    if choice is not None:
                        chosen[partition] = choice
            without = [p for p in remaining if p not in chosen]
            if without:
                _log.info("No leader by %s for %s", strategy.value, ", ".join(map(str, without)))
            remaining = await self._write(chosen, batch, elected)
        return elected

    async def _write(
        self, chosen: Mapping[TopicPartition, Elected], batch: RequestBatch, elected: list[TopicPartition]
    ) -> list[TopicPartition]:
        """Write the choices; returns those to be made again."""
        if not chosen:
            return []
        written = await self._office.ledger.put_leaderships(
            {partition: choice.leadership for partition, choice in chosen.items()}
        )
        async for part in slices(written.done.items()):
            for partition, leadership in part:
                self._state.leaderships[partition] = leadership
                self._state.partition_states[partition] = PartitionState.ONLINE
                batch.leader_and_isr(chosen[partition].recipients, partition, is_new=False)
                elected.append(partition)
        return await refreshed(self._office, written.conflicts)

    async def _unclean_topics(
        self, partitions: Sequence[TopicPartition], strategy: Strategy, unclean: bool
    ) -> dict[str, bool]:
        """By topic, whether unclean leaders are allowed; asked only where nobody in sync is online."""
        allowed: dict[str, bool] = {}
        if strategy is not Strategy.OFFLINE:
            return allowed
        for partition in partitions:
            known = self._state.leaderships[partition]
            if partition.topic in allowed or any(self._state.is_online(b, partition) for b in known.isr):
                continue
            allowed[partition.topic] = unclean or await self._office.unclean_allowed(partition.topic)
        return allowed


def choose(
    state: ControllerState, partition: TopicPartition, strategy: Strategy, unclean: bool
) -> Elected | None:
    """The leader of a partition by a strategy, as things are now; None where there is none. Pure."""
    assignment, known = state.assignment(partition), state.leaderships[partition]

    def online(broker: int) -> bool:
        return state.is_online(broker, partition)

    match strategy:
        case Strategy.OFFLINE:
            return elections.for_offline(assignment, known, online, unclean=unclean)
        case Strategy.REASSIGN:
            return elections.for_reassignment(assignment, known, online)
        case Strategy.PREFERRED:
            return elections.for_preferred(assignment, known, online)
        case Strategy.CONTROLLED_SHUTDOWN:
            return elections.for_controlled_shutdown(
                assignment,
                known,
                lambda broker: state.is_online(broker, partition, shutting_down=True),
                lambda broker: broker not in state.shutting_down,
            )


async def refreshed(office: Office, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Read the states of partitions that somebody else has written. Returns those that can be tried again: a
    state that is gone, or that a later controller wrote, cannot.
    """
    again: list[TopicPartition] = []
    for partition in partitions:
        stored = await office.ledger.leadership(partition)
        if stored is None or stored.controller_epoch > office.state.epoch:
            _log.error("The state of partition %s is not this controller's to change: %s", partition, stored)
            continue
        office.state.leaderships[partition] = stored
        again.append(partition)
    return again

"""Topics and partitions appear in the store, and are given leaders; or disappear from it.

Whoever creates a topic, on this broker or another, writes its node with the assignment; that is all the
request there is. A creation that was interrupted after that write is finished in the same way.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from replication.controller.assignment import Assignment, assignments_in, encode_assignments
from replication.controller.cluster_state import TopicPartition
from replication.controller.elections import Strategy
from replication.controller.ledger import Ledger
from replication.controller.office import Office
from replication.controller.partition_states import PartitionMachine
from replication.controller.replica_states import ReplicaMachine
from replication.controller.states import PartitionState, ReplicaState
from replication.metadata import paths, payloads
from replication.metadata.store import BadVersion, Node, NoNode, Put
from runtime.entropy import Random

_log = logging.getLogger(__name__)


class TopicChanges:
    """The comings and goings of topics and partitions."""

    def __init__(
        self, office: Office, partitions: PartitionMachine, replicas: ReplicaMachine, random: Random
    ) -> None:
        self._office = office
        self._state = office.state
        self._partitions = partitions
        self._replicas = replicas
        self._random = random

    async def on_topics(self) -> list[str]:
        """Topics have appeared or gone. Returns the new ones."""
        names = dict.fromkeys(await self._office.ledger.children(paths.TOPICS))
        for topic in [topic for topic in self._state.assignments if topic not in names]:
            _log.warning("Topic %s is gone from the store", topic)
            self._state.remove_topic(topic)
        new = [topic for topic in names if topic not in self._state.assignments]
        born: list[TopicPartition] = []
        for topic in new:
            self._office.follow(paths.topic(topic))
            stored = await read_topic(self._office.ledger, topic, self._random)
            if stored is not None:
                self._state.add_topic(topic, *stored)
                born += self._state.partitions_of(topic)
        await self._bear(born)
        return [topic for topic in new if topic in self._state.assignments]

    async def on_partitions(self, topic: str) -> None:
        """The node of a topic has changed: partitions may have been added."""
        known = self._state.assignments.get(topic)
        stored = None if known is None else await read_topic(self._office.ledger, topic, self._random)
        if known is None or stored is None:
            return
        added = {index: assignment for index, assignment in stored[1].items() if index not in known}
        if not added:
            return
        if topic in self._state.deleting:
            await self._undo(topic, known)
            return
        known.update(added)
        await self._bear([TopicPartition(topic, index) for index in added])

    async def _bear(self, partitions: Sequence[TopicPartition]) -> None:
        """From nothing to a first leader."""
        if not partitions:
            return
        self._partitions.mark(partitions, PartitionState.NEW)
        await self._replicas.move(self._state.replicas_of(partitions), ReplicaState.NEW)
        await self._partitions.elect(partitions, Strategy.OFFLINE)
        await self._replicas.move(self._state.replicas_of(partitions), ReplicaState.ONLINE)

    async def _undo(self, topic: str, known: dict[int, Assignment]) -> None:
        _log.warning("Partitions are not added to topic %s, which is being deleted", topic)
        value = encode_assignments(self._state.topic_ids[topic], known)
        await self._office.ledger.write([Put(paths.topic(topic), value)])


async def read_topic(
    ledger: Ledger, topic: str, random: Random, node: Node | None = None
) -> tuple[bytes, dict[int, Assignment]] | None:
    """The id and the assignments of a topic, which is given an id where it has none (one that a broker of
    before 2.8 created); None where the node is gone or cannot be read. `node` is what has just been read.
    """
    path = paths.topic(topic)
    while True:
        node = node or await ledger.get(path)
        if node is None:
            return None
        try:
            stored = payloads.decode_topic(path, node.value)
        except payloads.BadPayload as damaged:
            _log.error("A topic is left alone: %s", damaged)
            return None
        assignments = assignments_in(stored)
        if stored.topic_id is not None:
            return stored.topic_id, assignments
        topic_id = random.uuid()
        try:
            await ledger.write([Put(path, encode_assignments(topic_id, assignments), node.version)])
        except (BadVersion, NoNode):
            node = None
            continue
        return topic_id, assignments

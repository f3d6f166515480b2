"""When a cluster has come to rest: what is still open, said so that a run that does not end tells why.

All brokers serve and know what the tree says; no topic waits for its deletion and no partition is being
moved; every assigned replica is in sync, follows the leader of the epoch and ends where the high watermark
is; nobody waits for a commit; where leaders are balanced often, those named first lead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replication.metadata import paths
from replication.metadata.payloads import StatePayload, decode_topic
from tests.simulation.inside import Batch, batches_of, image_of, replica_on
from tests.simulation.machine import BrokerMachine
from tests.simulation.watched_tree import WatchedTree

IMBALANCE = 0.1  # what a controller lets be

Place = tuple[str, bytes, int, tuple[int, ...]]  # topic, its id, partition, assigned brokers


class Settling:
    """See the module. `machines` by broker id."""

    def __init__(self, machines: dict[int, BrokerMachine], tree: WatchedTree, balanced: bool) -> None:
        self._machines, self._tree, self._balanced = machines, tree, balanced

    def open_matters(self) -> list[str]:
        """What is not as it will be; empty at rest."""
        found = [
            f"{machine.name} does not serve" for machine in self._machines.values() if not machine.serving
        ]
        found += [f"{topic} is to be deleted" for topic in self._tree.children.get(paths.DELETE_TOPICS, ())]
        if paths.CONTROLLER not in self._tree.nodes:
            found.append("there is no controller")
        if found:
            return found
        for topic, topic_id, index, assigned in self._partitions():
            state = self._tree.state(topic, index)
            where = f"{topic}-{index}"
            if state is None or state.leader < 0 or sorted(state.isr) != sorted(assigned):
                found.append(f"{where}: {state} of {assigned}")
            else:
                found += self._open_at(where, (topic, topic_id, index, assigned), state)
        for name in self._tree.children.get(paths.TOPICS, ()):
            payload = decode_topic(name, self._tree.nodes[paths.topic(name)].value)
            if payload.adding or payload.removing:
                found.append(f"{name} is being moved")
        return found or self._unbalanced()

    def logs(self) -> dict[tuple[str, int], dict[str, list[Batch]]]:
        """The batches of each replica that is assigned, by partition and broker, from where all have some:
        one that was killed may have forgotten that its first records were deleted.
        """
        found: dict[tuple[str, int], dict[str, list[Batch]]] = {}
        for topic, topic_id, index, assigned in self._partitions():
            replicas = {each: replica_on(self._machines[each], topic_id, index) for each in assigned}
            start = max(replica.log.start_offset for replica in replicas.values() if replica is not None)
            for broker_id, replica in replicas.items():
                assert replica is not None, "it was there when all was settled"
                batches = [each for each in batches_of(replica.log) if each[1] >= start]
                found.setdefault((topic, index), {})[f"b{broker_id}"] = batches
        return found

    def _partitions(self) -> Iterator[Place]:
        for name in sorted(self._tree.children.get(paths.TOPICS, ())):
            payload = decode_topic(name, self._tree.nodes[paths.topic(name)].value)
            for index, assigned in sorted(payload.assignment.items()):
                yield name, payload.topic_id or b"", index, tuple(assigned)

    def _open_at(self, where: str, place: Place, state: StatePayload) -> list[str]:
        found = []
        replicas = {each: replica_on(self._machines[each], place[1], place[2]) for each in place[3]}
        for broker_id, replica in replicas.items():
            if replica is None:
                found.append(f"{where} is not on {broker_id}")
            elif (replica.leader_id, replica.leader_epoch) != (state.leader, state.leader_epoch):
                found.append(f"{where} on {broker_id}: {replica.leader_id} {replica.leader_epoch}, {state}")
            elif replica.log.end_offset != replica.log.high_watermark:
                found.append(
                    f"{where} on {broker_id}: {replica.log.high_watermark} < {replica.log.end_offset}"
                )
            elif replica.commits is not None and replica.commits:
                found.append(f"{where} on {broker_id}: somebody waits for a commit")
        ends = {replica.log.end_offset for replica in replicas.values() if replica is not None}
        if not found and len(ends) > 1:
            found.append(f"{where} ends at {sorted(ends)}")
        return found + self._unaware(where, place, state)

    def _unaware(self, where: str, place: Place, state: StatePayload) -> list[str]:
        """Who does not know yet."""
        found = []
        for machine in self._machines.values():
            image: Any = image_of(machine)
            known = image.partition(place[0], place[2])
            if known is None or (known.leader, known.leader_epoch) != (state.leader, state.leader_epoch):
                found.append(f"{machine.name} knows of {where}: {known}")
        return found

    def _unbalanced(self) -> list[str]:
        """Brokers that do not lead what names them first, beyond what a controller lets be."""
        first: dict[int, list[bool]] = {}
        for topic, _, index, assigned in self._partitions():
            state = self._tree.state(topic, index)
            assert state is not None
            first.setdefault(assigned[0], []).append(state.leader == assigned[0])
        return [
            f"{broker_id} leads {sum(leads)} of {len(leads)} that name it first"
            for broker_id, leads in first.items()
            if self._balanced and leads.count(False) / len(leads) > IMBALANCE
        ]

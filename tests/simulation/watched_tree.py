"""The cluster's metadata tree, which looks at every change of what Kafka keeps there and tells of breaches.

Leader epochs never fall; another leader needs another epoch; an ISR is never empty, holds the leader and only
replicas that are assigned or being added; a controller's epoch rises by one with each election.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from replication.metadata import paths
from replication.metadata.memory_store import MemoryTree
from replication.metadata.payloads import StatePayload, decode_state, decode_topic
from replication.metadata.store import Create, Delete, Operation, Put

STATE = "/state"


class WatchedTree(MemoryTree):
    """See the module. `fail` hears of each breach, `note` of each state."""

    def __init__(self, fail: Callable[[str], None], note: Callable[[str], None]) -> None:
        super().__init__()
        self._fail, self._note = fail, note
        self._states: dict[str, StatePayload] = {}
        self._elections = 0

    def apply(self, operations: Sequence[Operation], session_id: int) -> list[int]:
        results = super().apply(operations, session_id)
        for operation in operations:
            path = operation.path
            match operation:
                case Create() | Put() if path.startswith(paths.TOPICS) and path.endswith(STATE):
                    self._state(path, operation.value)
                case Delete() if path in self._states:
                    del self._states[path]
                case Put() if path == paths.CONTROLLER_EPOCH:
                    self._elected(int(operation.value))
                case _:
                    continue
        return results

    def _state(self, path: str, value: bytes) -> None:
        state, before = decode_state(path, value), self._states.get(path)
        self._states[path] = state
        topic, index = path.split("/")[3], int(path.split("/")[-2])
        self._note(f"{path} leader {state.leader} epoch {state.leader_epoch} isr {state.isr}")
        if not state.isr:
            self._fail(f"{path}: an ISR of nobody")
        if state.leader != -1 and state.leader not in state.isr:
            self._fail(f"{path}: leader {state.leader} is not in ISR {state.isr}")
        assigned = self.replicas(topic, index)
        if not set(state.isr) <= set(assigned):
            self._fail(f"{path}: ISR {state.isr} of replicas {sorted(assigned)}")
        if before is None:
            return
        if state.leader_epoch < before.leader_epoch:
            self._fail(f"{path}: leader epoch {state.leader_epoch} after {before.leader_epoch}")
        if state.leader != before.leader and state.leader_epoch == before.leader_epoch:
            self._fail(f"{path}: leaders {before.leader} and {state.leader} in epoch {state.leader_epoch}")
        if state.controller_epoch < before.controller_epoch:
            self._fail(f"{path}: controller epoch {state.controller_epoch} after {before.controller_epoch}")

    def _elected(self, epoch: int) -> None:
        if epoch != self._elections + 1:
            self._fail(f"controller epoch {epoch} after {self._elections}")
        self._elections = epoch

    def state(self, topic: str, index: int) -> StatePayload | None:
        """What is decided about a partition now."""
        return self._states.get(paths.partition_state(topic, index))

    def replicas(self, topic: str, index: int) -> tuple[int, ...]:
        """Who shall have a replica, those that are being added included."""
        path = paths.topic(topic)
        payload = decode_topic(path, self.nodes[path].value)
        return tuple(dict.fromkeys((*payload.assignment[index], *payload.adding.get(index, ()))))

"""The cluster's metadata tree, which looks at every change of what Kafka keeps there and tells of breaches.

Leader epochs never fall; another leader needs another epoch; an ISR is never empty, holds the leader and only
replicas that are assigned or being added; it grows within a leader epoch only, but for an unclean election;
a controller's epoch rises by one with each election, and an earlier one's controller writes no state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from replication.metadata import paths
from replication.metadata.memory_store import MemoryTree
from replication.metadata.payloads import StatePayload, TopicPayload, decode_state, decode_topic
from replication.metadata.store import Create, Delete, Operation, Put

STATE = "/state"


@dataclass(slots=True, frozen=True)
class StateChange:
    """One write of a partition's state; `before` is None at its creation."""

    topic: str
    topic_id: bytes
    index: int
    before: StatePayload | None
    after: StatePayload

    @property
    def unclean(self) -> bool:
        """Whether a leader was chosen that was not in sync."""
        before, after = self.before, self.after
        return before is not None and after.leader >= 0 and after.leader not in before.isr

    @property
    def joined(self) -> tuple[int, ...]:
        """Who is in sync from now on, and was not before."""
        before = () if self.before is None else self.before.isr
        return tuple(each for each in self.after.isr if each not in before)


class WatchedTree(MemoryTree):
    """See the module. `fail` hears of each breach, `note` of each state, `on_state` of each change of one,
    `on_topic` of each topic that is written, `on_topic_gone` of its end.
    """

    def __init__(self, fail: Callable[[str], None], note: Callable[[str], None]) -> None:
        super().__init__()
        self._fail, self._note = fail, note
        self._states: dict[str, StatePayload] = {}
        self._elections = 0
        self.on_state: Callable[[StateChange], None] = lambda change: None
        self.on_topic: Callable[[str, TopicPayload], None] = lambda topic, payload: None
        self.on_topic_gone: Callable[[str], None] = lambda topic: None
        self.may_be_unclean: Callable[[str], bool] = lambda topic: True

    def apply(self, operations: Sequence[Operation], session_id: int) -> list[int]:
        results = super().apply(operations, session_id)
        for operation in operations:
            path = operation.path
            match operation:
                case Create() | Put() if path.startswith(paths.TOPICS) and path.endswith(STATE):
                    self._state(path, operation.value)
                case Create() | Put() if path.rpartition("/")[0] == paths.TOPICS:
                    self.on_topic(path.rpartition("/")[2], decode_topic(path, operation.value))
                case Delete() if path in self._states:
                    del self._states[path]
                case Delete() if path.rpartition("/")[0] == paths.TOPICS:
                    self.on_topic_gone(path.rpartition("/")[2])
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
        if state.controller_epoch != self._elections:
            self._fail(f"{path}: written by controller {state.controller_epoch}, after {self._elections}")
        change = StateChange(topic, self.topic(topic).topic_id or b"", index, before, state)
        self._follows(path, change)
        self.on_state(change)

    def _follows(self, path: str, change: StateChange) -> None:
        """A state must be one that may follow the state before it."""
        before, state = change.before, change.after
        if before is None:
            return
        if change.unclean and not self.may_be_unclean(change.topic):
            self._fail(f"{path}: leader {state.leader} was not in sync: {before.isr}")
        if change.joined and not change.unclean and state.leader_epoch != before.leader_epoch:
            self._fail(f"{path}: {change.joined} joined with another leader epoch")
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

    def topic(self, topic: str) -> TopicPayload:
        """Its id and assignment."""
        path = paths.topic(topic)
        return decode_topic(path, self.nodes[path].value)

    def replicas(self, topic: str, index: int) -> tuple[int, ...]:
        """Who shall have a replica, those that are being added included."""
        payload = self.topic(topic)
        return tuple(dict.fromkeys((*payload.assignment[index], *payload.adding.get(index, ()))))

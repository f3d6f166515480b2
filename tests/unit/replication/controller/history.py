"""What must hold of all that controllers write and send."""

from __future__ import annotations

from replication.metadata import paths, payloads
from replication.metadata.memory_store import MemoryTree
from replication.metadata.store import Create, Put


class History:
    """What must hold of all that is ever written and sent."""

    def __init__(self, tree: MemoryTree) -> None:
        self.tree = tree
        self.leaders: dict[tuple[bytes, int, int], int] = {}
        self.states: dict[tuple[bytes, int], tuple[payloads.StatePayload, int]] = {}
        self.writes = 0
        self.broken: list[AssertionError] = []

    def check(self, operations) -> None:
        """After a transaction was applied."""
        self.writes += 1
        try:
            self._check(operations)
        except AssertionError as broken:
            self.broken.append(broken)

    def _check(self, operations) -> None:
        for operation in operations:
            if isinstance(operation, Create | Put) and operation.path.endswith("/state"):
                self._state(operation.path)
            elif isinstance(operation, Put) and operation.path == paths.CONTROLLER_EPOCH:
                assert int(operation.value) == operation.version + 1 if operation.version >= 0 else True

    def _state(self, path: str) -> None:
        topic, index = path.split("/")[3], int(path.split("/")[5])
        stored = payloads.decode_topic(paths.topic(topic), self.tree.nodes[paths.topic(topic)].value)
        node = self.tree.nodes[path]
        now = payloads.decode_state(path, node.value)
        key = (stored.topic_id, index)
        assert now.isr, path
        assert now.leader in (-1, *now.isr), (path, now)
        assert len(set(now.isr)) == len(now.isr)
        assert set(now.isr) <= set(stored.assignment[index]), (path, now, stored.assignment[index])
        current = int(self.tree.nodes[paths.CONTROLLER_EPOCH].value)
        assert now.controller_epoch == current, "a fenced controller has written"
        if key in self.states:
            before, version = self.states[key]
            assert node.version == version + 1
            assert now.leader_epoch >= before.leader_epoch
            assert now.controller_epoch >= before.controller_epoch
            assert now.leader == before.leader or now.leader_epoch > before.leader_epoch
        self.states[key] = (now, node.version)
        self.leader(stored.topic_id, index, now.leader_epoch, now.leader)

    def leader(self, topic_id: bytes, index: int, epoch: int, leader: int) -> None:
        """One leader at most in each leader epoch."""
        if leader >= 0:
            known = self.leaders.setdefault((topic_id, index, epoch), leader)
            if known != leader:
                self.broken.append(AssertionError(f"two leaders of epoch {epoch}: {known} and {leader}"))

"""What may not become of a partition's state is told, and nothing else."""

from __future__ import annotations

import pytest

from replication.metadata import paths
from replication.metadata.payloads import StatePayload, TopicPayload, encode_state, encode_topic
from replication.metadata.store import Create, Delete, Put, parent_of
from tests.simulation.watched_tree import StateChange, WatchedTree

STATE = paths.partition_state("t", 0)
SESSION = 1


class Tree:
    """Of a topic with the replicas 1, 2 and 3, 1 leads in epoch 5, with 2 in sync; controller epoch 2."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.changes: list[StateChange] = []
        self.tree = WatchedTree(self.told.append, lambda text: None)
        self.tree.may_be_unclean = lambda topic: False
        self.tree.on_state = self.changes.append
        self._make(paths.CONTROLLER_EPOCH, b"0")
        for epoch in (1, 2):
            self.do(Put(paths.CONTROLLER_EPOCH, str(epoch).encode()))
        payload = TopicPayload(b"i" * 16, {0: (1, 2, 3)}, {}, {})
        self._make(paths.topic("t"), encode_topic(payload))
        self._make(STATE, encode_state(StatePayload(1, 5, 2, (1, 2))))
        assert self.told == []

    def _make(self, path: str, value: bytes) -> None:
        if parent_of(path) not in self.tree.nodes:
            self._make(parent_of(path), b"")
        self.do(Create(path, value))

    def do(self, *operations) -> None:
        self.tree.apply(operations, SESSION)

    def write(self, leader: int, epoch: int, isr: tuple[int, ...], controller: int = 2) -> list[str]:
        """What is told about this state."""
        self.do(Put(STATE, encode_state(StatePayload(leader, epoch, controller, isr))))
        return self.told


@pytest.mark.parametrize(
    "state",
    [
        (1, 5, (1, 2, 3)),  # a follower joined
        (1, 5, (1,)),
        (2, 6, (2,)),
        (-1, 6, (2,)),
        (1, 7, (1, 2)),
    ],
)
def test_what_may_happen_is_not_told(state):
    assert Tree().write(*state) == []


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ((1, 5, ()), "an ISR of nobody"),
        ((3, 6, (1, 2)), "leader 3 is not in ISR"),
        ((1, 5, (1, 4)), "of replicas"),
        ((1, 4, (1, 2)), "leader epoch 4 after 5"),
        ((2, 5, (1, 2)), "leaders 1 and 2 in epoch 5"),
        ((3, 6, (3,)), "leader 3 was not in sync"),
        ((1, 6, (1, 2, 3)), "joined with another leader epoch"),
        ((1, 5, (1, 2), 1), "written by controller 1, after 2"),
        ((1, 5, (1, 2), 3), "written by controller 3, after 2"),
    ],
)
def test_what_may_not_happen_is_told(state, words):
    assert any(words in told for told in Tree().write(*state))


def test_an_unclean_leader_is_told_where_none_may_be_and_seen_where_one_may():
    tree = Tree()
    tree.tree.may_be_unclean = lambda topic: topic == "t"
    assert tree.write(3, 6, (3,)) == []
    assert tree.changes[-1].unclean
    assert tree.changes[-1].joined == (3,)
    assert not tree.changes[0].unclean


def test_a_controllers_epoch_rises_by_one():
    tree = Tree()
    tree.do(Put(paths.CONTROLLER_EPOCH, b"4"))
    assert tree.told == ["controller epoch 4 after 2"]


def test_topics_are_told_of_when_they_come_change_and_go():
    tree, seen = Tree(), []
    tree.tree.on_topic = lambda topic, payload: seen.append((topic, sorted(payload.assignment)))
    tree.tree.on_topic_gone = lambda topic: seen.append((topic, None))
    payload = TopicPayload(b"i" * 16, {0: (1, 2, 3), 1: (2,)}, {}, {})
    tree.do(Put(paths.topic("t"), encode_topic(payload)))
    for path in (STATE, parent_of(STATE), paths.partitions("t"), paths.topic("t")):
        tree.do(Delete(path))
    assert seen == [("t", [0, 1]), ("t", None)]
    assert tree.tree.state("t", 0) is None

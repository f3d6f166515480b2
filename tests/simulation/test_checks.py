"""What the looks into brokers must see: replicas that differ, leaders too many, marks that go astray."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from replication.metadata.image import ClusterImage, PartitionImage, TopicImage
from replication.metadata.payloads import StatePayload
from tests.simulation import leader_checks, replica_checks
from tests.simulation.leader_checks import LeaderChecks
from tests.simulation.replica_checks import ReplicaChecks
from tests.simulation.watched_tree import StateChange

ID = b"i" * 16
GOOD = [(0, 4, 0, 11), (5, 5, 2, 12), (6, 9, 2, 13)]  # first and last offset, epoch, checksum


def replica(batches=GOOD, mark=10, start=0, epoch=2, leader=1, leads=False, entries=((0, 0), (2, 5)), **more):
    end = batches[-1][1] + 1 if batches else 0
    log = SimpleNamespace(
        start_offset=start,
        high_watermark=mark,
        end_offset=more.pop("end", end),
        leader_epochs=SimpleNamespace(_entries=entries and list(entries), _range=None),
        batches=list(batches),
    )
    return SimpleNamespace(
        topic="t",
        index=0,
        topic_id=ID,
        log=log,
        leader_epoch=epoch,
        leader_id=leader,
        is_leader=leads,
        leadership=None,
        isr=(1, 2, 3),
        min_isr=2,
        partition_epoch=4,
        **more,
    )


class Brokers:
    """Three brokers with the replicas that a test gives them; in the tree 1 leads in epoch 2, all in sync."""

    def __init__(self, monkeypatch):
        self.replicas = {number: [] for number in (1, 2, 3)}
        self.told = []
        machines = {
            number: SimpleNamespace(name=f"b{number}", lives=1, serving=True, process=1)
            for number in self.replicas
        }
        monkeypatch.setattr(replica_checks, "replicas_on", self.on)
        monkeypatch.setattr(replica_checks, "batches_of", lambda log: log.batches)
        monkeypatch.setattr(leader_checks, "replicas_on", self.on)
        self.image = None
        monkeypatch.setattr(leader_checks, "image_of", lambda machine: self.image)
        monkeypatch.setattr(leader_checks, "broker_epoch_of", lambda machine: self.registered)
        monkeypatch.setattr(
            leader_checks, "replica_on", lambda machine, *_: next(iter(self.on(machine)), None)
        )
        self.registered = 7
        self.state = StatePayload(1, 2, 1, (1, 2, 3))
        nodes = {f"/brokers/ids/{number}": SimpleNamespace(created_id=7) for number in machines}
        nodes["/brokers/topics/t"] = SimpleNamespace()
        self.going = {}
        tree = SimpleNamespace(
            state=lambda topic, index: self.state,
            nodes=nodes,
            children={"/admin/delete_topics": self.going},
            topic=lambda topic: SimpleNamespace(topic_id=ID),
        )
        self.logs = ReplicaChecks(list(machines.values()), self.told.append)
        self.leaders = LeaderChecks(machines, tree, self.told.append, lambda topic: True)

    def on(self, machine):
        return self.replicas[int(machine.name[1:])]

    def tell(self, *partitions):
        """All brokers tell clients of these (leader, epoch); None: of one they tell nothing."""
        gap = -1, -1, -1, (), ()
        known = [
            PartitionImage(index, *((*each, 0, (1,), (1, 2, 3)) if each else gap))
            for index, each in enumerate(partitions)
        ]
        self.image = ClusterImage().with_topics([TopicImage("t", ID, tuple(known))])
        self.leaders.look()
        return self.told

    def have(self, *replicas):
        for number, each in enumerate(replicas, 1):
            self.replicas[number] = [each]
        return self

    def look(self):
        self.logs.look()
        self.leaders.look()
        return self.told

    def join(self, number):
        before, after = StatePayload(1, 2, 1, (1, 2)), StatePayload(1, 2, 1, (1, 2, number))
        self.leaders.changed(StateChange("t", ID, 0, before, after))
        return self.told


@pytest.fixture
def brokers(monkeypatch):
    return Brokers(monkeypatch)


def test_what_is_as_it_should_be_is_not_told(brokers):
    tail = [*GOOD, (10, 11, 2, 14)]
    brokers.have(replica(tail, leads=True), replica(mark=6), replica(tail, mark=10, entries=None))
    assert brokers.look() == []
    assert brokers.join(3) == []


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replica([*GOOD[:2], (6, 9, 2, 99)]), "of one epoch"),
        (replica([*GOOD[:2], (6, 9, 1, 99)]), "leader epoch 1 after 2"),
        (replica([(0, 4, 1, 11), *GOOD[1:]], entries=((1, 0), (2, 5))), "differ below 10"),
        (replica([GOOD[0], GOOD[2]]), "offset 6 after 4"),
        (replica(epoch=1), "a batch of epoch 2 in epoch 1"),
        (replica(entries=((0, 0), (2, 6))), "epoch 2, the cache has"),
        (replica(entries=((0, 0), (2, 5), (1, 7))), "epochs ["),
    ],
)
def test_a_log_that_is_wrong_is_told(brokers, other, words):
    brokers.have(replica(leads=True), other)
    assert any(words in told for told in brokers.look())


def test_after_an_unclean_election_logs_may_differ_until_the_end(brokers):
    brokers.have(replica(leads=True), replica([(0, 4, 1, 11), *GOOD[1:]], entries=((1, 0), (2, 5))))
    brokers.logs.unclean[ID, 0] = None
    assert brokers.look() == []
    brokers.logs.unclean.clear()
    assert brokers.look() != []


@pytest.mark.parametrize(
    ("leader", "other", "words"),
    [
        (replica(leads=True), replica(leads=True), "others 1"),
        (replica(leads=True), replica(leader=3), "has 3 lead in epoch 2, others 1"),
        (replica(leads=True, mark=11), replica(), "high watermark 11, end 10"),
        (replica(leads=True, start=11), replica(), "start 11"),
        (replica(leads=True), replica(GOOD[:2], mark=6), "in sync is broker 2 with 6"),
    ],
)
def test_leaders_and_offsets_that_are_wrong_are_told(brokers, leader, other, words):
    brokers.have(leader, other)
    brokers.leaders.look()
    assert any(words in told for told in brokers.told)


def test_a_mark_that_falls_within_an_epoch_is_told_and_one_of_the_next_epoch_may(brokers):
    leader = replica(leads=True)
    brokers.have(leader)
    brokers.leaders.look()
    leader.log.high_watermark = 6
    leader.leader_epoch, brokers.state = 3, StatePayload(1, 3, 1, (1,))
    brokers.leaders.look()
    assert brokers.told == []
    leader.log.high_watermark = 5
    brokers.leaders.look()
    assert "high watermark 5 after 6" in brokers.told[0]


def test_a_mark_that_moves_under_the_minimum_is_told_unless_the_isr_has_changed(brokers):
    leader = replica(leads=True, mark=5)
    leader.isr = (1,)
    brokers.have(leader)
    brokers.leaders.look()
    leader.log.high_watermark = 6
    leader.partition_epoch = 5
    brokers.leaders.look()
    assert brokers.told == []
    leader.log.high_watermark = 10
    brokers.leaders.look()
    assert brokers.told == ["t-0 on b1: high watermark 10 after 6 with the ISR (1,)"]


def test_what_is_committed_is_looked_at_before_the_isr_changes(brokers):
    brokers.have(replica(leads=True), replica(GOOD[:2], mark=6))
    before, after = StatePayload(1, 2, 1, (1, 2)), StatePayload(1, 3, 1, (1,))
    brokers.leaders.changed(StateChange("t", ID, 0, before, after))
    assert brokers.told == ["t-0 on b1: high watermark 10, in sync is broker 2 with 6"]


def test_a_role_that_goes_back_to_an_earlier_epoch_is_told(brokers):
    follows = replica(epoch=3, leader=2)
    brokers.have(follows)
    brokers.leaders.look()
    follows.leader_epoch, follows.leader_id = 2, 1
    brokers.leaders.look()
    assert brokers.told == ["t-0 on b1: epoch 2 after 3"]


def test_metadata_that_goes_back_to_an_earlier_epoch_is_told_also_across_a_gap(brokers):
    assert brokers.tell((1, 2), (2, 3)) == []
    brokers.going["t"] = None
    assert brokers.tell(None, (2, 3)) == []
    brokers.going.clear()
    assert brokers.tell((1, 1), (2, 3))[0] == "b1 tells of epoch 1 of t-0, after 2"


def test_a_partition_that_metadata_tells_no_more_is_told_unless_its_topic_is_to_be_deleted(brokers):
    assert brokers.tell(None, (2, 3)) == []
    assert brokers.tell((1, 2), (2, 3)) == []
    assert brokers.tell(None, (2, 3))[0] == "b1 tells no more of t-0, after epoch 2"


def test_a_start_that_falls_is_told_of_the_same_log_only(brokers):
    brokers.have(replica(leads=True, start=5))
    brokers.leaders.look()
    brokers.have(replica(leads=True))
    brokers.leaders.look()
    assert brokers.told == []
    brokers.replicas[1][0].log.start_offset = -1
    brokers.leaders.look()
    assert any("starts at -1, before at 0" in told for told in brokers.told)


@pytest.mark.parametrize(
    ("joins", "words"),
    [
        (replica(GOOD[:2], mark=0), "with 6 of 10"),
        (replica(epoch=1), "follows 1 in epoch 1"),
        (replica(leader=2), "follows 2 in epoch 2"),
    ],
)
def test_who_joins_without_what_is_committed_is_told(brokers, joins, words):
    brokers.have(replica(leads=True), replica(), joins)
    assert any(words in told for told in brokers.join(3))


def test_who_joins_without_all_from_before_the_epoch_is_told(brokers):
    leader = replica(leads=True, mark=5)
    leader.leadership = SimpleNamespace(epoch_start=10)
    brokers.have(leader, replica(), replica(GOOD[:2], mark=0))
    assert any("with 6 of 10" in told for told in brokers.join(3))


def test_who_joins_and_has_no_log_is_told_unless_he_was_started_again_meanwhile(brokers):
    brokers.have(replica(leads=True), replica())
    brokers.registered = 6
    assert brokers.join(3) == []
    brokers.registered = 7
    assert any("without a log" in told for told in brokers.join(3))

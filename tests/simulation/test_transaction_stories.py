"""Transactions over the death of coordinators and leaders, in virtual time."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode as E
from tests.simulation.story import METADATA, Story
from tests.simulation.transactional import SETTINGS, TOPIC, Committed, Idempotent, Transactional

pytestmark = pytest.mark.xdist_group("simulation: stories")


def roles(story, version=1, *, apart=False):
    """A producer, its coordinator, the broker that can take that over, and one that cannot and leads `t`.

    `apart`: the coordinator has no replica of `t`.
    """
    producer = Transactional(story, "x", version).init()
    coordinator = story.leader(TOPIC)
    [heir] = [number for number in story.replicas(TOPIC) if number != coordinator]
    [leader] = [number for number in story.machines if number not in (coordinator, heir)]
    story.create("t", (leader, heir) if apart else (leader, heir, coordinator))
    return producer, coordinator, heir, leader


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_what_a_coordinator_had_decided_when_it_died_is_carried_out_by_the_next_one(commit, version):
    """No marker had left it, as nothing passed between it and the leader of the data."""
    with Story(**SETTINGS) as story:
        producer, coordinator, _, leader = roles(story, version)
        assert producer.produce("t", b"a", b"b") == E.NONE
        story.cut(coordinator, leader)
        assert producer.end(commit) == E.NONE
        assert Committed(story, leader, "t").stable_end == 0
        assert producer.state(coordinator) == ("PrepareCommit" if commit else "PrepareAbort")
        story.kill(coordinator)
        producer.await_state("CompleteCommit" if commit else "CompleteAbort")
        story.until(lambda: Committed(story, leader, "t").stable_end == 3, "the marker to be replicated", 5)
        seen = Committed(story, leader, "t")
        assert seen.aborted == ([] if commit else [(producer.producer_id, 0)])
        assert producer.produce("t", b"c") == E.NONE
        assert producer.end(commit=True) == E.NONE
        story.settle()


def lead(story, number):
    """Have a replica of the coordinator's topic lead it, in good order."""
    [other] = [each for each in story.replicas(TOPIC) if each != number]
    story.begin_move(TOPIC, number, other)
    story.until(lambda: story.replicas(TOPIC) == [number, other], "another preferred leader", 5)
    story.begin_elect(TOPIC)
    story.until(lambda: story.leader(TOPIC) == number, "another coordinator", 5)


def test_a_coordinator_that_was_replaced_and_comes_back_ends_no_later_transaction():
    """What it had sent before gets lost only when it coordinates again, and the next transaction is open."""
    with Story(**SETTINGS) as story:
        producer, coordinator, heir, leader = roles(story, apart=True)
        assert producer.produce("t", b"a") == E.NONE
        story.cut(coordinator, leader)
        assert producer.end(commit=True) == E.NONE
        ended_s = story.now_s
        lead(story, heir)
        producer.await_state("CompleteCommit")
        assert producer.produce("t", b"b") == E.NONE
        lead(story, coordinator)
        assert story.now_s - ended_s < 1.0, "the first marker was given up before"
        story.pass_time(2)
        story.heal()
        story.pass_time(10)
        assert producer.state(coordinator) == "Ongoing"
        assert Committed(story, leader, "t").stable_end == 2
        assert producer.end(commit=False) == E.NONE
        producer.await_state("CompleteAbort")
        assert Committed(story, leader, "t").aborted == [(producer.producer_id, 2)]
        story.settle()


def test_markers_of_a_coordinator_that_does_not_know_of_its_successor_end_nothing():
    with Story(**SETTINGS) as story:
        producer, zombie, heir, leader = roles(story)
        assert producer.produce("t", b"a") == E.NONE
        story.cut(zombie, leader)
        assert producer.end(commit=True) == E.NONE
        story.cut(zombie, METADATA)
        story.until(lambda: story.leader(TOPIC) == heir, "another coordinator", 5)
        producer.await_state("CompleteCommit")
        assert producer.produce("t", b"b") == E.NONE
        assert producer.state(zombie) == "PrepareCommit"
        story.heal(zombie, leader)
        story.pass_time(10)
        assert producer.state(zombie) == "PrepareCommit"
        assert Committed(story, leader, "t").stable_end == 2
        assert producer.end(commit=False) == E.NONE
        story.until(lambda: Committed(story, leader, "t").stable_end == 4, "the marker", 5)
        assert Committed(story, leader, "t").aborted == [(producer.producer_id, 2)]
        story.settle()


def test_a_marker_that_finds_its_leader_dead_goes_to_the_next_one():
    """The open transaction is known to the new leader by what it had copied."""
    with Story(**SETTINGS) as story:
        producer, coordinator, _, leader = roles(story)
        assert producer.produce("t", b"a") == E.NONE
        story.kill(leader)
        assert producer.end(commit=False) == E.NONE
        producer.await_state("CompleteAbort")
        successor = story.leader("t")
        assert successor not in (leader, -1)
        seen = Committed(story, successor, "t")
        assert (seen.stable_end, seen.aborted) == (2, [(producer.producer_id, 0)])
        assert producer.state(coordinator) == "CompleteAbort"
        story.settle()


def test_a_transaction_is_complete_when_its_markers_are_on_all_replicas_in_sync():
    with Story(**SETTINGS) as story:
        producer, coordinator, follower, leader = roles(story, apart=True)
        assert producer.produce("t", b"a") == E.NONE
        story.cut(leader, follower)
        assert producer.end(commit=True) == E.NONE
        story.until(lambda: story.replica(leader, "t").log.end_offset > 1, "a marker", 1)
        for _ in range(5):
            story.pass_time(1)
            assert producer.state(coordinator) == "PrepareCommit"
            assert Committed(story, leader, "t").stable_end <= 1
        story.heal()
        producer.await_state("CompleteCommit")
        story.settle()


def test_a_follower_tells_readers_of_committed_records_what_its_leader_tells_them():
    """KIP-392: what is undecided, and what was aborted."""
    with Story(**SETTINGS) as story:
        producer, coordinator, follower, leader = roles(story)
        other = Transactional(story, "other").init()
        assert producer.produce("t", b"a") == E.NONE
        assert producer.end(commit=False) == E.NONE
        producer.await_state("CompleteAbort")
        assert other.produce("t", b"b", b"c") == E.NONE
        assert producer.produce("t", b"d") == E.NONE
        assert producer.end(commit=True) == E.NONE
        producer.await_state("CompleteCommit")
        story.until(lambda: Committed(story, follower, "t").high_watermark == 6, "the follower to know", 5)
        for number in (leader, follower, coordinator):
            seen = Committed(story, number, "t")
            assert (seen.error, seen.stable_end, seen.rows) == (E.NONE, 2, [(0, b"a")])
            assert seen.aborted == [(producer.producer_id, 0)]
        assert other.end(commit=False) == E.NONE
        other.await_state("CompleteAbort")
        story.until(lambda: Committed(story, follower, "t").stable_end == 7, "the follower to know", 5)
        for number in (leader, follower):
            seen = Committed(story, number, "t")
            assert sorted(seen.aborted) == sorted([(producer.producer_id, 0), (other.producer_id, 2)])
            assert Committed(story, number, "t", 5).aborted == [(other.producer_id, 2)]
        story.settle()


def test_what_a_producer_sent_is_known_to_the_next_leader():
    """Batches that come again have their offsets of the first time, others must follow the last one."""
    with Story(**SETTINGS) as story:
        leader, successor, last = story.controller_last()
        story.create("t", (leader, successor, last))
        producer = Idempotent(story, "t")
        for sequence in range(6):
            assert producer.send(leader, sequence) == (E.NONE, sequence)
        story.kill(leader)
        story.until(lambda: story.leader("t") == successor, "another leader", 5)
        story.until(lambda: story.replica(successor, "t").is_leader, "it to know", 5)
        for sequence in (5, 1, 3):
            assert producer.send(successor, sequence) == (E.NONE, sequence)
        assert producer.send(successor, 0)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.send(successor, 7)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.send(successor, 6) == (E.NONE, 6)
        assert producer.send(successor, 1, epoch=1)[0] == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.send(successor, 0, epoch=1) == (E.NONE, 7)
        assert producer.send(successor, 7)[0] == E.INVALID_PRODUCER_EPOCH
        story.settle()

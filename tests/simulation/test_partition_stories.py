"""Links between brokers, and to the metadata server, are cut: who is in sync, who leads, what is answered."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.simulation.story import LAG_S, METADATA, SESSION_S, TICK_S, Story

pytestmark = pytest.mark.xdist_group("simulation: stories")

FOUND_DEAD_S = SESSION_S + TICK_S
"""After so long at most the others know that a broker is gone."""
HEALED_S = 20
"""So long it may take until hosts are connected again: dialling is tried ever more rarely."""
LEFT_BEHIND_S = 1.5 * LAG_S + 0.5
"""After so long at most a follower that does not fetch has left the ISR."""


def test_a_follower_cut_from_its_leader_leaves_the_isr_and_joins_again_when_it_is_healed():
    with Story() as story:
        leader, follower, other = story.controller_last()
        story.create("t", (leader, other, follower))
        story.load("t")
        story.await_acks()
        epoch = story.state("t").leader_epoch
        story.cut(leader, follower)
        story.until(lambda: follower not in story.isr("t"), "the ISR to shrink", LEFT_BEHIND_S)
        story.await_acks()
        assert story.is_registered(follower)
        assert len(story.isr("t")) == 2
        story.heal()
        story.until(lambda: story.isr("t") == (1, 2, 3), "the ISR to be full", HEALED_S)
        assert (story.leader("t"), story.state("t").leader_epoch) == (leader, epoch)
        story.settle()


def test_a_leader_cut_from_the_metadata_is_replaced_and_can_neither_commit_nor_change_the_isr():
    """Nobody tells it of its successor, for who is not registered gets no orders; its followers have left."""
    with Story() as story:
        zombie, other, controller = story.controller_last()
        story.create("t", (zombie, other, controller))
        story.load("t")
        story.await_acks()
        epoch = story.broker_epoch(zombie)
        story.cut(zombie, METADATA)
        story.until(lambda: story.leader("t") == other, "another leader", FOUND_DEAD_S + 0.5)
        for number in (other, controller):
            story.until(lambda number=number: story.replica(number, "t").leader_id == other, "both to know")
        assert story.replica(zombie, "t").is_leader
        assert story.produce(zombie, "t", b"late") in (
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        )
        answer = story.ask(controller, m.AlterPartitionRequest(broker_id=zombie, broker_epoch=epoch))
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert zombie not in story.isr("t")
        story.settle()


def test_a_leader_without_contact_to_the_metadata_takes_nothing_that_it_may_lose_once_its_session_is_over():
    """Before that what acks=1 wrote may vanish with the next leader; acks=all is promised by the others."""
    with Story() as story:
        zombie, other, controller = story.controller_last()
        story.create("t", (zombie, other, controller))
        assert story.produce(zombie, "t", b"all") == ErrorCode.NONE
        story.cut(zombie, METADATA)
        story.cut(zombie, controller)
        story.cut(zombie, other)
        assert story.produce(zombie, "t", b"lost", acks=1) == ErrorCode.NONE
        story.pass_time(SESSION_S + 0.2)
        for _ in range(3):
            assert story.produce(zombie, "t", b"no", acks=1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            story.pass_time(1)
        story.until(lambda: story.leader("t") == other, "another leader")
        assert story.produce(other, "t", b"new") == ErrorCode.NONE
        story.settle()
        for number in (zombie, other, controller):
            assert [batch[0] for batch in story.batches(number, "t")] == [0, 1]
        assert story.values(story.leader("t"), "t") == [b"all", b"new"]


def test_a_zombie_that_is_alone_in_sync_is_replaced_by_nobody_and_what_it_wrote_stays():
    with Story() as story:
        zombie, other, controller = story.controller_last()
        story.create("t", (zombie, other), min_insync_replicas="1")
        story.cut(zombie, other)
        assert story.produce(zombie, "t", b"first", acks=1) == ErrorCode.NONE
        story.until(lambda: story.replica(zombie, "t").isr == (zombie,), "the ISR to shrink", LEFT_BEHIND_S)
        story.cut(zombie, METADATA)
        story.cut(zombie, controller)
        assert story.produce(zombie, "t", b"alone") == ErrorCode.NONE
        story.until(lambda: not story.is_registered(zombie), "its session to end", FOUND_DEAD_S)
        story.pass_time(5)
        assert story.leader("t") == -1
        assert story.isr("t") == (zombie,)
        story.settle()
        assert story.values(story.leader("t"), "t") == [b"first", b"alone"]


def test_a_leader_cut_from_its_followers_alone_refuses_acks_all_and_shows_nothing_new():
    """It is the controller, too, and goes on being both."""
    with Story() as story:
        second, third, leader = story.controller_last()
        story.create("t", (leader, second, third))
        assert story.produce(leader, "t", b"all") == ErrorCode.NONE
        story.cut(leader, second)
        story.cut(leader, third)
        waiting = story.begin(story.producing(leader, "t", b"waits", timeout_ms=10_000))
        story.until(lambda: story.isr("t") == (leader,), "the ISR to shrink", LEFT_BEHIND_S)
        assert story.produce(leader, "t", b"no") == ErrorCode.NOT_ENOUGH_REPLICAS
        assert story.produce(leader, "t", b"one", acks=1) == ErrorCode.NONE
        story.pass_time(5)
        assert not waiting.done()
        assert story.values(leader, "t") == [b"all"]
        assert story.replica(leader, "t").log.high_watermark == 1
        assert (story.leader("t"), story.controller()) == (leader, leader)
        story.heal()
        story.until(waiting.done, "the record to be committed after all", HEALED_S)
        assert waiting.result().error_code == ErrorCode.NONE
        story.settle()
        assert story.values(leader, "t") == [b"all", b"waits", b"one"]


def test_a_broker_that_the_controller_cannot_reach_gets_all_orders_in_their_order_when_it_can():
    with Story() as story:
        stale, other, controller = story.controller_last()
        story.create("t", (stale, other))
        story.cut(controller, stale)
        names = [f"new-{number}" for number in range(3)]
        for name in names:
            story.begin_create(name, (stale, other))
            story.until(lambda name=name: name in story.topics(), f"{name} to be stored")
        story.begin_move("t", other, stale)
        story.pass_time(1)
        assert [name for name in names if name in story.image(stale).topics] == []
        assert story.is_registered(stale)
        heard = []
        story.context(stale).holder.subscribe(
            lambda old, new: heard.extend(name for name in new.topics if name not in old.topics)
        )
        story.heal()
        story.until(lambda: heard == names, "the orders to arrive", HEALED_S)
        for name in names:
            story.until(
                lambda name=name: story.replica(stale, name).is_leader, f"it to lead {name}", HEALED_S
            )
            assert story.leader(name) == stale
        story.settle()


def test_a_controller_cut_from_the_metadata_is_deposed_and_leaders_find_the_next_one():
    with Story() as story:
        leader, other, old = story.controller_last()
        story.create("t", (leader, other, old))
        story.load("t")
        epoch = story.controller_epoch()
        story.cut(old, METADATA)
        story.until(lambda: story.controller() not in (-1, old), "another controller", FOUND_DEAD_S + 0.5)
        assert story.controller_epoch() == epoch + 1
        story.until(lambda: story.isr("t") == tuple(sorted((leader, other))), "the old one out of the ISR", 1)
        request = m.AlterPartitionRequest(broker_id=leader, broker_epoch=story.broker_epoch(leader))
        story.pass_time(SESSION_S)
        assert story.ask(old, request).error_code == ErrorCode.NOT_CONTROLLER
        story.heal()
        story.until(lambda: story.isr("t") == (1, 2, 3), "the leader to have it taken in again", HEALED_S)
        story.settle()


def test_a_leader_cut_from_the_controller_asks_for_ever_and_counts_whom_it_asks_for():
    """The follower that shall join holds the high watermark from then on, as if it had."""
    with Story() as story:
        leader, other, controller = story.controller_last()
        story.create("t", (leader, other), min_insync_replicas="1")
        story.cut(leader, other)
        assert story.produce(leader, "t", b"first", acks=1) == ErrorCode.NONE
        partition = story.replica(leader, "t")
        leadership = partition.leadership
        story.until(lambda: partition.isr == (leader,), "the ISR to shrink", LEFT_BEHIND_S)
        story.cut(leader, controller)
        story.heal(leader, other)
        story.until(lambda: leadership.maximal == {leader, other}, "the proposal", HEALED_S)
        story.pass_time(10)
        assert (partition.isr, leadership.maximal) == ((leader,), {leader, other})
        story.cut(leader, other)
        assert story.produce(leader, "t", b"not yet", timeout_ms=5_000) == ErrorCode.REQUEST_TIMED_OUT
        assert (partition.log.end_offset, partition.log.high_watermark) == (2, 1)
        story.heal()
        story.until(lambda: story.isr("t") == tuple(sorted((leader, other))), "the ISR to be full", HEALED_S)
        story.settle()


def test_a_client_with_metadata_of_a_stale_broker_is_refused_once_and_finds_the_leader():
    with Story() as story:
        stale, second, controller = story.controller_last()
        story.create("t", (second, controller))
        story.cut(controller, stale)
        story.begin_move("t", controller, second)
        story.begin_elect("t")
        story.until(lambda: story.leader("t") == controller, "the new leader")
        story.until(lambda: story.replica(controller, "t").is_leader, "it to know")
        told = story.metadata(stale, "t")
        assert told.leader_id == second
        assert story.produce(told.leader_id, "t", b"a") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        story.heal()
        story.until(
            lambda: story.metadata(stale, "t").leader_id == controller, "the stale one to learn", HEALED_S
        )
        assert story.produce(controller, "t", b"a") == ErrorCode.NONE
        story.settle()


def test_a_follower_whose_requests_arrive_and_whose_answers_are_lost_does_not_count_and_leaves():
    with Story() as story:
        leader, other, controller = story.controller_last()
        story.create("t", (leader, other, controller))
        assert story.produce(leader, "t", b"all") == ErrorCode.NONE
        story.cut_one_way(leader, other)
        waiting = story.begin(story.producing(leader, "t", b"waits", timeout_ms=10_000))
        story.until(
            lambda: story.isr("t") == tuple(sorted((leader, controller))), "it to leave", LEFT_BEHIND_S
        )
        assert story.replica(leader, "t").leadership.followers[other].end_offset == 1
        story.until(waiting.done, "the record to be committed without it", 1)
        assert waiting.result().error_code == ErrorCode.NONE
        story.settle()

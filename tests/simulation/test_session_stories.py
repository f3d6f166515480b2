"""Brokers lose their session with the metadata, or only the connection, without crashing."""

from __future__ import annotations

import pytest

from replication.metadata import paths
from replication.metadata.memory_store import MemoryStore
from replication.metadata.payloads import TopicPayload, encode_topic
from replication.metadata.store import SessionEvent
from tests.simulation.story import METADATA, SESSION_S, TICK_S, Story

pytestmark = pytest.mark.xdist_group("simulation: stories")

OVER_S = SESSION_S + TICK_S
"""After so long without contact a session has ended."""


def at_once(work):
    """The result of what waits for nothing."""
    with pytest.raises(StopIteration) as ended:
        work.send(None)
    return ended.value.value


def test_a_broker_whose_session_ended_has_lost_its_leaderships_and_comes_back_under_a_new_epoch():
    with Story() as story:
        story.create("t", (1, 2, 3), (2, 3, 1))
        story.load("t")
        story.await_acks()
        epoch, lives = story.broker_epoch(1), story.machines[1].lives
        story.cut(1, METADATA)
        story.until(lambda: not story.is_registered(1), "the session to end", OVER_S)
        story.until(lambda: story.leader("t", 0) == 2, "another leader", within_s=1)
        story.until(
            lambda: story.isr("t", 0) == story.isr("t", 1) == (2, 3), "it to be in no ISR", within_s=1
        )
        story.await_acks()
        story.heal()
        story.until(lambda: story.is_registered(1), "a new registration", within_s=2)
        assert story.broker_epoch(1) > epoch
        story.until(lambda: story.isr("t", 0) == story.isr("t", 1) == (1, 2, 3), "the ISR to be whole")
        assert story.machines[1].lives == lives
        story.settle()


def test_a_controller_whose_session_ended_writes_nothing_more_under_its_epoch():
    """What is asked of it meanwhile is done by the next one, and it hears that it is none when it is back."""
    with Story() as story:
        first = story.controller()
        epoch = story.controller_epoch()
        second, third = (number for number in (1, 2, 3) if number != first)
        story.create("t", (second, third, first))
        story.load("t")
        story.await_acks()
        story.cut(first, METADATA)
        story.begin_create("late", (second, third))
        story.until(lambda: story.controller() in (second, third), "another controller", OVER_S + 0.5)
        assert story.controller_epoch() == epoch + 1
        written = []
        story.on_write(
            lambda operation: (
                written.append(story.state("t").controller_epoch)
                if operation.path == paths.partition_state("t", 0)
                else None
            )
        )
        story.heal()
        story.until(lambda: story.is_registered(first), "the first one to be back")
        story.settle()
        assert story.controller() in (second, third)
        assert set(written) <= {epoch + 1}
        assert all(story.image(number).controller_id == story.controller() for number in (1, 2, 3))


def test_the_same_broker_is_the_controller_again_under_a_new_epoch():
    with Story(brokers=1, min_insync_replicas="1") as story:
        story.create("t", (1,))
        broker_epoch, epoch = story.broker_epoch(1), story.controller_epoch()
        story.cut(1, METADATA)
        story.until(lambda: story.controller() == -1, "the session to end", OVER_S)
        story.heal()
        story.until(lambda: story.controller() == 1, "it to be the controller again", within_s=5)
        assert story.controller_epoch() == epoch + 1
        assert story.broker_epoch(1) > broker_epoch
        story.create("u", (1,))
        story.settle()


def test_a_connection_that_comes_back_in_time_changes_no_registration_and_misses_nothing():
    """A topic that somebody else writes into the tree during the gap is noticed afterwards."""
    with Story() as story:
        story.create("t", (1, 2, 3))
        controller = story.controller()
        before = {number: story.broker_epoch(number) for number in (1, 2, 3)}
        state, epoch = story.state("t"), story.controller_epoch()
        suspended = []
        for number in (1, 2, 3):
            story.cut(number, METADATA)
            session = story.machines[number].process.broker._store
            session.on_session(
                lambda event: suspended.append(event) if event == SessionEvent.SUSPENDED else None
            )
        payload = TopicPayload(bytes(range(16)), {0: (1, 2, 3)}, {}, {})
        somebody = MemoryStore(story.tree)
        for work in (somebody.open(), somebody.create(paths.topic("other"), encode_topic(payload))):
            at_once(work)
        story.until(lambda: len(suspended) == 3, "all connections to be given up", SESSION_S)
        story.heal()
        story.until(lambda: story.tree.state("other", 0) is not None, "leaders for the new topic", within_s=3)
        story.pass_time(OVER_S)
        assert {number: story.broker_epoch(number) for number in (1, 2, 3)} == before
        assert (story.controller(), story.controller_epoch(), story.state("t")) == (controller, epoch, state)
        story.settle()


def test_all_sessions_end_at_once():
    with Story() as story:
        story.create("t", (1, 2, 3), (2, 3, 1), (3, 1, 2))
        story.load("t")
        story.await_acks()
        before = {number: story.broker_epoch(number) for number in (1, 2, 3)}
        epoch = story.controller_epoch()
        for number in (1, 2, 3):
            story.cut(number, METADATA)
        story.until(
            lambda: not any(story.is_registered(number) for number in (1, 2, 3)),
            "all sessions to end",
            OVER_S,
        )
        story.pass_time(1)
        story.heal()
        story.until(lambda: all(story.is_registered(number) for number in (1, 2, 3)), "all to be back")
        story.until(lambda: story.controller_epoch() > epoch, "a controller")
        assert all(story.broker_epoch(number) > before[number] for number in (1, 2, 3))
        story.await_acks()
        story.settle()


def test_a_broker_whose_session_ends_while_it_starts_goes_on_in_the_next_one():
    """It is back before its old session has ended, waits for that, and loses the way to the metadata."""
    with Story() as story:
        story.create("t", (1, 2, 3))
        story.load("t")
        story.await_acks()
        epoch = story.broker_epoch(1)
        story.kill(1)
        story.start(1)
        lives = story.machines[1].lives
        story.pass_time(0.5)
        assert story.broker_epoch(1) == epoch, "its place is still taken"
        story.cut(1, METADATA)
        story.pass_time(OVER_S)
        story.heal()
        story.until(lambda: story.is_registered(1), "a registration", within_s=5)
        story.until(lambda: story.isr("t") == (1, 2, 3), "the ISR to be whole")
        assert story.machines[1].lives == lives
        story.settle()


def test_a_new_session_alone_lets_nobody_acknowledge_by_himself():
    """Until the controller has told the roles under the new registration others may lead."""
    with Story() as story:
        second = next(number for number in (2, 3) if number != story.controller())
        leader = 1 if story.controller() != 1 else second
        others = tuple(number for number in (1, 2, 3) if number != leader)
        story.create("t", (leader, *others))
        epoch = story.broker_epoch(leader)
        for number in others:
            story.cut(leader, number)
        story.cut(leader, METADATA)
        story.until(lambda: not story.is_registered(leader), "the session to end", OVER_S)
        story.until(lambda: story.leader("t") in others, "another leader", within_s=1)
        story.heal(leader, METADATA)
        story.until(lambda: story.is_registered(leader), "a new registration", within_s=5)
        assert story.broker_epoch(leader) > epoch
        story.pass_time(0.5)
        assert story.replica(leader, "t").is_leader, "it has heard nothing"
        assert story.replica(leader, "t").fenced
        story.heal()
        story.until(lambda: not story.replica(leader, "t").fenced, "its roles")
        assert not story.replica(leader, "t").is_leader
        story.settle()

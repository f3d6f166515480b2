"""Brokers, and the way to the metadata server, stand still for a while and go on (SIGSTOP and SIGCONT)."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.metadata.store import Operation
from tests.simulation.story import LAG_S, METADATA, SESSION_S, TICK_S, Story

pytestmark = pytest.mark.xdist_group("simulation: stories")

FOUND_DEAD_S = SESSION_S + TICK_S
"""After so long at most the others know that a broker is gone."""
PATIENT_S = 8.0
"""A session that outlives every pause of these stories."""


def test_a_paused_follower_leaves_the_isr_where_there_is_load_and_stays_where_there_is_none():
    """The set in sync changes under the same leader epoch, both times; its session goes on."""
    with Story(session_s=PATIENT_S) as story:
        leader, follower, other = story.controller_last()
        story.create("loaded", (leader, other, follower))
        story.create("idle", (leader, other, follower))
        assert story.produce(leader, "idle", b"one") == ErrorCode.NONE
        story.until(lambda: story.in_sync("idle"), "the followers to have all of it, and to have said so")
        story.load("loaded")
        story.await_acks()
        epochs = [story.state(topic).leader_epoch for topic in ("loaded", "idle")]
        story.pause(follower)
        story.until(lambda: follower not in story.isr("loaded"), "it to leave", 1.5 * LAG_S + 0.5)
        story.pass_time(2)
        assert story.isr("idle") == (1, 2, 3)
        story.resume(follower)
        story.until(lambda: story.isr("loaded") == (1, 2, 3), "it to join again", 5)
        assert [story.state(topic).leader_epoch for topic in ("loaded", "idle")] == epochs
        assert story.leader("loaded") == leader
        story.settle()


@pytest.mark.parametrize("acks", [1, -1])
def test_what_a_paused_leader_had_not_read_yet_is_refused_when_it_goes_on_after_its_session(acks):
    with Story() as story:
        leader, second, third = story.controller_last()
        story.create("t", (leader, second, third))
        assert story.produce(leader, "t", b"before") == ErrorCode.NONE
        caller = story.caller(leader)
        story.pause(leader)
        late = [story.begin(story.sending(caller, "t", value, acks=acks)) for value in (b"late", b"later")]
        story.until(lambda: story.leader("t") == second, "another leader", FOUND_DEAD_S + 0.5)
        story.until(lambda: story.replica(second, "t").is_leader, "it to know")
        assert story.produce(second, "t", b"new") == ErrorCode.NONE
        story.resume(leader)
        story.until(lambda: all(each.done() for each in late), "the answers")
        for each in late:
            assert each.result().error_code in (
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.REQUEST_TIMED_OUT,
            )
        story.settle()
        assert story.values(story.leader("t"), "t") == [b"before", b"new"]


def test_a_paused_controller_is_replaced_and_neither_writes_nor_is_obeyed_when_it_goes_on():
    """It has orders under way, and the end of a broker to act on, when it stops."""
    with Story() as story:
        first, second, old = story.controller_last()
        story.create("t", (first, second, old))
        epoch = story.controller_epoch()
        story.pause(old)
        story.kill(second)
        story.until(lambda: story.controller() not in (-1, old), "another controller", FOUND_DEAD_S + 0.5)
        story.until(lambda: story.isr("t") == (first,), "the ISR to shrink", FOUND_DEAD_S)
        assert story.controller_epoch() == epoch + 1
        assert story.office(old).is_active
        written = []

        def heard(operation: Operation) -> None:
            if operation.path.startswith("/brokers/topics"):
                written.append(story.state("t").controller_epoch)

        story.on_write(heard)
        story.resume(old)
        story.until(lambda: not story.office(old).is_active, "it to resign", 3)
        story.until(lambda: len(story.isr("t")) == 2, "it to be in sync again", 10)
        assert set(written) == {epoch + 1}
        assert story.controller_epoch() == epoch + 1
        story.settle()


def test_while_the_metadata_is_away_for_less_than_a_session_nothing_happens():
    with Story() as story:
        story.create("t", (1, 2, 3))
        story.load("t")
        story.await_acks()
        before = story.state("t"), story.controller(), story.controller_epoch(), story.registrations()
        for number in story.machines:
            story.cut(number, METADATA)
        story.await_acks()
        story.pass_time(SESSION_S - 0.4 - TICK_S)
        story.heal()
        story.pass_time(2 * FOUND_DEAD_S)
        after = story.state("t"), story.controller(), story.controller_epoch(), story.registrations()
        assert after == before
        story.settle()


def test_while_the_metadata_is_away_for_long_acks_all_goes_on_and_nobody_leaves_or_joins():
    """What one replica alone would promise is refused; afterwards all have new registrations."""
    with Story() as story:
        leader, second, third = story.controller_last()
        story.create("t", (leader, second, third))
        before = story.registrations()
        for number in story.machines:
            story.cut(number, METADATA)
        story.pass_time(FOUND_DEAD_S + 1)
        state = story.state("t")
        for value in (b"1", b"2", b"3"):
            assert story.produce(leader, "t", value) == ErrorCode.NONE
        assert story.produce(leader, "t", b"no", acks=1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        story.pause(third)
        assert story.produce(leader, "t", b"4", timeout_ms=500) == ErrorCode.REQUEST_TIMED_OUT
        story.pass_time(2 * LAG_S)
        assert story.state("t") == state
        story.resume(third)
        story.heal()
        story.until(lambda: all(map(story.is_registered, story.machines)), "all to be registered", 5)
        assert all(story.registrations()[number] > before[number] for number in before)
        story.settle()
        now = story.leader("t")
        assert story.produce(now, "t", b"5", acks=1) == ErrorCode.NONE
        assert story.values(now, "t")[:3] == [b"1", b"2", b"3"]

"""Brokers stop in good order: leaderships move first, what cannot move goes offline. Leaders are elected."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import pairwise

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.simulation.caller import CallLost
from tests.simulation.story import SESSION_S, TICK_S, Story
from tests.simulation.test_move_stories import apart, others
from tests.simulation.wire import WireSettings

pytestmark = pytest.mark.xdist_group("simulation: stories")

LOST = -1000


def stop(story, number, within_s=3.0):
    """As SIGTERM, until the process has ended."""
    story.machines[number].stop()
    story.until(lambda: story.machines[number].process is None, f"broker {number} to end", within_s)


async def produce_in_a_row(story, number, topic, told, times=1000):
    """Fills with (sent, answered, error) of one record after the other, until there is no connection."""
    caller = await story._admin.caller_for(object(), story.machines[number].address)
    for count in range(times):
        sent_s, error = story.now_s, LOST
        with contextlib.suppress(CallLost):
            error = (await story.sending(caller, topic, b"%d-%d" % (number, count))).error_code
        told.append((sent_s, story.now_s, error))
        if error == LOST:
            return


def test_a_leader_that_is_stopped_hands_over_before_it_closes_its_connections():
    """Who waits for it is told of another leader and of nothing worse; that one serves at once."""
    with Story() as story:
        story.wire.settings = WireSettings(spikes=0)  # a packet that is late may find the door closed
        leader, second = others(story)
        story.create("t", (leader, second, story.controller()))
        story.load("t")
        story.await_acks()
        epoch = story.state("t").leader_epoch
        rows = [[] for _ in range(5)]
        for told in rows:
            story.begin(produce_in_a_row(story, leader, "t", told))
        story.pass_time(0.1)
        moved = []
        story.on_write(lambda _: moved.append(story.now_s) if story.leader("t") != leader else None)
        began_s = story.now_s
        story.machines[leader].stop()
        story.until(lambda: moved, "another leader", within_s=1)
        assert (story.leader("t"), story.state("t").leader_epoch) == (second, epoch + 1)
        answers = []
        story.begin(produce_in_a_row(story, second, "t", answers, times=20))
        story.until(lambda: any(error == 0 for _, _, error in answers), "an acknowledgement", within_s=0.3)
        assert story.now_s - began_s < 0.3
        story.until(lambda: story.machines[leader].process is None, "it to end", within_s=3)
        story.until(lambda: all(told[-1][2] == LOST for told in rows), "its connections to be closed", 1)
        for told in rows:
            errors = [error for _, _, error in told]
            refused = errors.count(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            first = len(errors) - 1 - refused
            assert errors == [0] * first + [ErrorCode.NOT_LEADER_OR_FOLLOWER] * refused + [LOST]
            assert told[-1][0] > moved[0]  # what got no answer was sent when another one led
        assert any(error == ErrorCode.NOT_LEADER_OR_FOLLOWER for told in rows for _, _, error in told)
        assert story.isr("t") == tuple(sorted((second, story.controller())))
        assert not story.is_registered(leader)
        story.start(leader)
        story.until(lambda: leader in story.isr("t"), "it to be in sync again")
        story.settle()


async def produce_to_the_leader(story, topic, acked, until):
    """One record after the other, wherever the leader is; fills with the moments of acknowledgements."""
    callers, count = {}, 0
    while not until:
        leader = story.leader(topic)
        try:
            if leader not in callers:
                address = story.machines[leader].address
                callers[leader] = await story._admin.caller_for(object(), address)
            answer = await story.sending(
                callers[leader], topic, f"{topic}{count}".encode(), timeout_ms=10_000
            )
        except (CallLost, KeyError):
            callers.pop(leader, None)
        else:
            if answer.error_code == ErrorCode.NONE:
                acked.append(story.now_s)
                count += 1
                continue
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("stopped", ["the controller", "another broker"])
def test_a_stop_holds_nobody_up_who_waits_for_all_replicas(stopped):
    """Neither where the broker led nor where it followed. Who has one record under way sends no other one by
    which a leader could see that it has to wait for fewer.
    """
    with Story(replica_lag_time_max_ms="30000") as story:
        story.wire.settings = WireSettings(spikes=0)
        acked = {}
        end = []
        for topic, replicas in (("a", (1, 2, 3)), ("b", (2, 3, 1)), ("c", (3, 1, 2))):
            story.create(topic, replicas)
            acked[topic] = []
            story.begin(produce_to_the_leader(story, topic, acked[topic], end))
        story.pass_time(0.3)
        number = story.controller() if stopped == "the controller" else others(story)[0]
        stop(story, number)
        story.pass_time(2)
        end.append(True)
        for topic, moments in acked.items():
            gaps = [later - earlier for earlier, later in pairwise(moments)]
            assert max(gaps) < 0.3, (topic, max(gaps))
            assert story.now_s - moments[-1] < 0.3
        story.settle()


def test_a_controller_that_is_stopped_has_a_successor_at_once():
    with Story() as story:
        first = story.controller()
        second, third = others(story)
        story.create("t", (first, second, third))
        story.load("t")
        story.await_acks()
        epoch = story.controller_epoch()
        stop(story, first)
        story.until(lambda: story.controller() in (second, third), "another controller", within_s=0.5)
        assert story.controller_epoch() == epoch + 1
        assert (story.leader("t"), story.isr("t")) == (second, tuple(sorted((second, third))))
        story.await_acks(within_s=1.5)
        story.settle()


def test_partitions_without_another_replica_do_not_hold_a_stop_up_and_are_offline_meanwhile():
    with Story(min_insync_replicas="1", controlled_shutdown_retry_backoff_ms="5000") as story:
        leader, other = others(story)
        story.create("alone", (leader,))
        story.create("t", (leader, other))
        assert story.produce(leader, "alone", b"kept") == ErrorCode.NONE
        stop(story, leader)  # it would take longer if it had to ask again
        story.until(lambda: story.leader("alone") == -1, "it to be offline", within_s=1)
        assert story.isr("alone") == (leader,)
        assert story.leader("t") == other
        story.until(
            lambda: story.metadata(other, "alone").error_code == ErrorCode.LEADER_NOT_AVAILABLE,
            "clients to be told so",
            within_s=1,
        )
        story.start(leader)
        story.until(lambda: story.leader("alone") == leader, "it to be led again")
        story.settle()
        assert story.values(leader, "alone") == [b"kept"]


def test_a_stop_that_an_earlier_life_of_the_broker_asks_for_moves_nothing():
    with Story() as story:
        leader, other = others(story)
        story.create("t", (leader, other))
        before = story.state("t")
        for epoch, error in (
            (story.broker_epoch(leader) - 1, ErrorCode.STALE_BROKER_EPOCH),
            (story.broker_epoch(leader), ErrorCode.NONE),
        ):
            assert story.state("t") == before
            request = m.ControlledShutdownRequest(broker_id=leader, broker_epoch=epoch)
            answer = story.ask(story.controller(), request)
            assert (answer.error_code, answer.remaining_partitions) == (error, [])
        assert (story.leader("t"), story.isr("t")) == (other, (other,))
        story.kill(leader)  # it is not let into an ISR again until it registers anew
        story.settle()


def elect_preferred(story, topic):
    """The error with which the election of a partition's first replica is answered."""
    kind = m.ElectLeadersRequest
    wanted = [kind.TopicPartitions(topic=topic, partitions=[0])]
    request = kind(election_type=0, topic_partitions=wanted, timeout_ms=5_000)
    answer = story.ask(story.controller(), request)
    assert answer.error_code == 0, answer
    return answer.replica_election_results[0].partition_result[0].error_code


def test_a_preferred_leader_is_elected_once_it_is_in_sync_and_not_before():
    with Story() as story:
        leader, other = others(story)
        story.create("t", (leader, other))
        assert elect_preferred(story, "t") == ErrorCode.ELECTION_NOT_NEEDED
        story.kill(leader)
        story.until(lambda: story.leader("t") == other, "another leader", SESSION_S + TICK_S + 0.5)
        assert elect_preferred(story, "t") == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        with apart(story, leader, other):
            story.start(leader)
            story.until(lambda: story.machines[leader].serving, "it to serve")
            story.pass_time(1)
            assert story.isr("t") == (other,)
            assert elect_preferred(story, "t") == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        story.until(lambda: leader in story.isr("t"), "it to be in sync")
        assert elect_preferred(story, "t") == ErrorCode.NONE
        assert story.leader("t") == leader
        assert story.metadata(story.controller(), "t").leader_id == leader
        assert elect_preferred(story, "t") == ErrorCode.ELECTION_NOT_NEEDED
        story.settle()

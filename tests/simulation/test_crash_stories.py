"""Brokers of a cluster are killed (kill -9): who leads then, what is refused, and what comes back."""

from __future__ import annotations

import itertools

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.metadata.store import Operation, Put
from tests.simulation.story import SESSION_S, TICK_S, Story

pytestmark = pytest.mark.xdist_group("simulation: stories")

FOUND_DEAD_S = SESSION_S + TICK_S
"""After so long at most the others know that a broker is gone."""
CLIENTS_S = 3
"""So long it may take until clients have found a new leader."""


def test_a_killed_leader_is_replaced_from_the_isr_within_its_session_under_the_next_epoch():
    with Story() as story:
        leader, second, third = story.controller_last()
        story.create("t", (leader, second, third))
        story.load("t")
        story.await_acks()
        story.kill(leader)
        story.until(lambda: story.leader("t") != leader, "another leader", FOUND_DEAD_S + 0.5)
        state = story.state("t")
        assert (state.leader, state.leader_epoch) == (second, 1)
        assert sorted(state.isr) == sorted((second, third))
        story.await_acks(within_s=CLIENTS_S)
        story.settle()


def test_a_killed_follower_holds_acks_all_up_until_its_session_ends_and_no_longer():
    with Story(replica_lag_time_max_ms="30000") as story:
        leader, follower, other = story.controller_last()
        story.create("t", (leader, other, follower))
        story.kill(follower)
        waiting = story.begin(story.producing(leader, "t", b"a", timeout_ms=10_000))
        story.pass_time(SESSION_S - 0.8)
        assert not waiting.done()
        story.until(waiting.done, "the answer", FOUND_DEAD_S)
        assert waiting.result().error_code == ErrorCode.NONE
        assert story.leader("t") == leader
        assert story.isr("t") == tuple(sorted((leader, other)))
        assert story.produce(leader, "t", b"b") == ErrorCode.NONE
        story.settle()


def test_a_survivor_of_three_leads_and_commits_nothing_until_another_one_is_back():
    """Below min.insync.replicas acks=all is refused; acks=1 is taken and shown to nobody yet."""
    with Story() as story:
        first, second, survivor = story.controller_last()
        story.create("t", (first, second, survivor))
        assert story.produce(first, "t", b"all") == ErrorCode.NONE
        story.until(lambda: story.replica(survivor, "t").log.high_watermark == 1, "all to know of the record")
        story.kill(first, second)
        story.until(
            lambda: story.replica(survivor, "t").is_leader and story.isr("t") == (survivor,), "it to lead"
        )
        assert story.produce(survivor, "t", b"no") == ErrorCode.NOT_ENOUGH_REPLICAS
        assert story.produce(survivor, "t", b"one", acks=1) == ErrorCode.NONE
        story.pass_time(1)
        assert story.values(survivor, "t") == [b"all"]
        story.start(second)
        story.until(lambda: len(story.isr("t")) == 2, "the second one to be in sync")
        story.until(lambda: story.values(survivor, "t") == [b"all", b"one"], "the record of acks=1")
        assert story.produce(survivor, "t", b"again") == ErrorCode.NONE
        story.settle()
        assert story.values(survivor, "t") == [b"all", b"one", b"again"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_after_all_were_killed_only_a_last_member_of_the_isr_leads_whoever_starts_first(order):
    with Story() as story:
        brokers = leader, behind, other = story.controller_last()
        story.create("t", (leader, other, behind))
        story.kill(behind)
        story.until(lambda: story.replica(leader, "t").isr == (leader, other), "the ISR to shrink")
        assert story.produce(leader, "t", b"a") == ErrorCode.NONE
        story.kill(leader, other)
        leaders = leaders_written(story)
        for place in order:
            story.start(brokers[place])
            story.pass_time(FOUND_DEAD_S + 1)
        story.settle()
        assert next(each for each in leaders if each > 0) != behind
        assert story.values(story.leader("t"), "t") == [b"a"]


def leaders_written(story: Story) -> list[int]:
    """Fills with the leader in each state that is written from now on."""
    leaders: list[int] = []

    def heard(operation: Operation) -> None:
        if isinstance(operation, Put) and operation.path.endswith("/state"):
            leaders.append(story.leader("t"))

    story.on_write(heard)
    return leaders


def with_an_isr_of_one_that_is_down(story: Story) -> None:
    """`t` on 1 and 2: 1 has a record of its own, shown to nobody, and is killed; 2 is back."""
    story.create("t", (1, 2))
    assert story.produce(1, "t", b"both") == ErrorCode.NONE
    story.kill(2)
    story.until(lambda: story.isr("t") == (1,), "the ISR to shrink")
    assert story.produce(1, "t", b"alone", acks=1) == ErrorCode.NONE
    story.kill(1)
    story.until(lambda: not story.is_registered(1) and not story.is_registered(2), "both to be gone")
    story.start(2)
    story.until(lambda: 2 in story.image(3).brokers, "the others to know that 2 is back")


def test_without_a_live_member_of_the_isr_nobody_leads_and_clients_are_told_so():
    with Story(brokers=3) as story:
        with_an_isr_of_one_that_is_down(story)
        story.pass_time(5)
        state = story.state("t")
        assert (state.leader, state.isr) == (-1, (1,))
        for number in (2, 3):
            told = story.metadata(number, "t")
            assert (told.error_code, told.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
        assert story.produce(2, "t", b"no") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        story.start(1)
        story.until(lambda: story.leader("t") == 1, "the member that is back to lead")
        assert story.state("t").leader_epoch == state.leader_epoch + 1
        story.settle()
        assert story.values(1, "t") == [b"both", b"alone"]


def test_an_unclean_leader_is_elected_when_the_topic_allows_it_and_the_old_one_cuts_its_log():
    """The set in sync is then the leader alone, recovering until the first change of that set."""
    with Story() as story:
        with_an_isr_of_one_that_is_down(story)
        states = []
        story.on_write(lambda operation: states.append(story.state("t")))
        allow_unclean(story)
        story.until(lambda: story.leader("t") == 2, "the unclean leader", within_s=0.5)
        [first] = [each for each in states if each.leader == 2][:1]
        assert (first.isr, first.recovering) == ((2,), True)
        story.until(lambda: story.replica(2, "t").is_leader, "it to know")
        story.history.forgive(("t", 0), 1)
        assert story.produce(2, "t", b"new", acks=1) == ErrorCode.NONE
        story.start(1)
        story.settle()
        assert (story.isr("t"), story.state("t").recovering) == ((1, 2), False)
        assert story.values(story.leader("t"), "t") == [b"both", b"new"]


def allow_unclean(story: Story) -> None:
    """By a client's request to the broker that is up and is not the controller."""
    kind = m.IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name="unclean.leader.election.enable", config_operation=0, value="true")
    topic = kind.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    answer = story.ask(next(each for each in (2, 3) if each != story.controller()), kind(resources=[topic]))
    assert answer.responses[0].error_code == ErrorCode.NONE


def test_a_broker_restarted_within_its_session_waits_for_its_end_and_has_a_later_epoch():
    """Kafka's ends at once, because its old registration is still there."""
    with Story() as story:
        leader, second, third = story.controller_last()
        story.create("t", (leader, second, third))
        story.load("t")
        story.await_acks()
        epoch = story.broker_epoch(leader)
        story.kill(leader)
        story.start(leader)
        story.pass_time(0.5)
        assert not story.machines[leader].serving
        assert story.broker_epoch(leader) == epoch
        story.until(lambda: story.machines[leader].serving, "it to serve", FOUND_DEAD_S + 1)
        assert story.broker_epoch(leader) > epoch
        story.settle()
        assert story.leader("t") == second


def test_a_controller_that_missed_a_restart_sees_it_by_the_epoch_and_brings_the_replica_back():
    """It hears of neither end nor beginning of the registration, and finds another epoch when it looks."""
    with Story() as story:
        story.create("t", (1, 2, 3))
        bounced, _, controller = story.controller_last()
        known, epoch = story.broker_epoch(bounced), story.state("t").leader_epoch
        story.kill(bounced)
        story.start(bounced)
        story.pass_time(SESSION_S - 0.2)
        story.pause(controller)
        story.until(
            lambda: story.is_registered(bounced) and story.broker_epoch(bounced) > known,
            "the new registration",
        )
        story.resume(controller)
        story.until(lambda: story.state("t").leader_epoch > epoch, "the controller to notice", within_s=1)
        assert story.controller() == controller
        story.load("t")
        story.await_acks()
        story.settle()
        assert story.isr("t") == (1, 2, 3)


@pytest.mark.parametrize("leads_everything", [False, True])
@pytest.mark.parametrize(
    "written", ["/brokers/topics/new", "/admin/delete_topics/gone", "/brokers/topics/moved"]
)
def test_a_killed_controller_is_replaced_under_the_next_epoch_and_what_was_begun_is_ended(
    written, leads_everything
):
    """A topic is being made, one deleted and one moved; it goes with the first write of one of them."""
    with Story() as story:
        second, third, first = story.controller_last()
        order = (first, second, third) if leads_everything else (second, third, first)
        story.create("t", order, order)
        story.create("gone", order)
        story.create("moved", (second,), min_insync_replicas="1")
        story.load("t")
        story.await_acks()
        epoch = story.controller_epoch()
        work = {
            "/brokers/topics/new": lambda: story.begin_create("new", order),
            "/admin/delete_topics/gone": lambda: story.begin_delete("gone"),
            "/brokers/topics/moved": lambda: story.begin_move("moved", third),
        }
        story.kill_at_write(first, written)
        for begin in work.values():
            begin()
        story.until(lambda: story.machines[first].process is None, "the write")
        story.until(lambda: story.controller() not in (-1, first), "another controller", FOUND_DEAD_S + 0.5)
        assert story.controller_epoch() == epoch + 1
        story.await_acks()
        for begin in (begin for path, begin in work.items() if path != written):
            begin()  # of the next controller: the one before may not have come to it
        story.pass_time(1)
        story.settle()
        story.until(lambda: story.topics() == ["moved", "new", "t"], "the deletion to end")
        assert story.replicas("moved") == [third]
        assert story.state("new").leader in order
        for number in order:
            assert story.context(number).logs.get("gone", 0) is None
            assert (story.context(number).logs.get("moved", 0) is None) == (number != third)

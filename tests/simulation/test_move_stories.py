"""Partitions are moved to other brokers: in which steps, what stops a move on its way, and what goes on."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.metadata import paths
from replication.metadata.payloads import decode_topic
from tests.simulation.story import SESSION_S, TICK_S, Story

pytestmark = pytest.mark.xdist_group("simulation: stories")

FOUND_DEAD_S = SESSION_S + TICK_S


def move(story, topic, replicas):
    """The error with which a move (None: its cancellation) is answered."""
    kind = m.AlterPartitionReassignmentsRequest
    partition = kind.ReassignablePartition(
        partition_index=0, replicas=None if replicas is None else list(replicas)
    )
    topics = [kind.ReassignableTopic(name=topic, partitions=[partition])]
    answer = story.ask(story.controller(), kind(timeout_ms=5_000, topics=topics))
    assert answer.error_code == 0, answer
    return answer.responses[0].partitions[0].error_code


def moving(story):
    """The topics that are being moved, as the controller lists them."""
    answer = story.ask(story.controller(), m.ListPartitionReassignmentsRequest(timeout_ms=5_000, topics=None))
    assert answer.error_code == 0, answer
    return [topic.name for topic in answer.topics]


def await_moved(story, topic, *replicas):
    """The move is over: the new replicas are in sync, and nobody else has a log."""

    def over():
        return (
            assignment(story, topic) == (replicas, (), ())
            and story.isr(topic) == tuple(sorted(replicas))
            and all(
                (story.context(number).logs.get(topic, 0) is None) == (number not in replicas)
                for number, machine in story.machines.items()
                if machine.serving
            )
        )

    story.until(over, f"{topic} to be on {replicas} and nowhere else")


def assignment(story, topic):
    """Replicas, those that are added and those that are removed, as they are stored."""
    path = paths.topic(topic)
    found = decode_topic(path, story.tree.nodes[path].value)
    return found.assignment[0], found.adding.get(0, ()), found.removing.get(0, ())


def others(story, *numbers):
    """Brokers that are neither the controller nor one of these."""
    return [number for number in story.machines if number not in (*numbers, story.controller())]


@contextmanager
def apart(story, one, *numbers):
    """A broker hears nothing of some others, nor they of it, for a while."""
    for number in numbers:
        story.cut(one, number)
    yield
    story.heal()


def test_a_move_under_load_takes_its_steps_in_order_and_leaves_no_log_behind():
    """The targets join, one of them leads, the old ones leave, and only then the topic names them no more."""
    with Story(brokers=6) as story:
        story.create("t", (1, 2, 3))
        story.load("t")
        story.await_acks()
        steps = []

        def heard(operation):
            if operation.path == paths.topic("t"):
                steps.append(assignment(story, "t"))
            elif operation.path == paths.partition_state("t", 0):
                steps.append((story.leader("t"), story.state("t").leader_epoch, story.isr("t")))

        story.on_write(heard)
        assert move(story, "t", (4, 5, 6)) == ErrorCode.NONE
        await_moved(story, "t", 4, 5, 6)
        begun, *rest, ended = steps
        assert begun == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
        assert ended == ((4, 5, 6), (), ())
        everybody = (1, 2, 3, 4, 5, 6)
        assert rest[0] == (1, 1, (1, 2, 3))
        elected = rest.index((4, 2, everybody))
        assert rest[elected - 1] == (1, 1, everybody)
        assert all((leader, epoch) == (1, 1) for leader, epoch, _ in rest[:elected])
        sizes = [len(isr) for _, _, isr in rest]
        assert sizes[:elected] == sorted(sizes[:elected])
        assert sizes[elected:] == sorted(sizes[elected:], reverse=True)
        assert all(leader == 4 for leader, _, _ in rest[elected:])
        assert rest[-1][2] == (4, 5, 6)
        story.await_acks()
        story.settle()


def test_a_replication_factor_goes_down_to_one_and_up_to_three():
    with Story(min_insync_replicas="1") as story:
        story.create("t", (1, 2, 3))
        story.load("t")
        for replicas in ((2,), (3, 2, 1)):
            story.await_acks()
            assert move(story, "t", replicas) == ErrorCode.NONE
            await_moved(story, "t", *replicas)
            assert story.leader("t") == 2  # who leads and is to stay goes on leading
        story.settle()


def test_a_cancelled_move_takes_the_added_replica_away_and_leaves_the_rest():
    with Story(brokers=4) as story:
        leader, follower, target = others(story)[:3]
        story.create("t", (leader, follower))
        story.load("t")
        story.await_acks()
        with apart(story, target, leader):
            assert move(story, "t", (target,)) == ErrorCode.NONE
            story.until(lambda: story.context(target).logs.get("t", 0), "the new replica")
            story.pass_time(1)
            assert moving(story) == ["t"]
            assert assignment(story, "t")[1:] == ((target,), (leader, follower))
            assert move(story, "t", None) == ErrorCode.NONE
            story.until(lambda: sorted(story.replicas("t")) == sorted((leader, follower)), "the cancellation")
        await_moved(story, "t", *story.replicas("t"))
        assert moving(story) == []
        assert move(story, "t", None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert story.leader("t") == leader
        story.await_acks()
        story.settle()


def test_another_target_takes_the_place_of_the_first_one_on_the_way():
    with Story(brokers=5) as story:
        leader, follower, first, second = others(story)
        story.create("t", (leader, follower))
        story.load("t")
        story.await_acks()
        with apart(story, first, leader):
            assert move(story, "t", (first, follower)) == ErrorCode.NONE
            story.until(lambda: story.context(first).logs.get("t", 0), "the first target's replica")
            assert move(story, "t", (second, follower)) == ErrorCode.NONE
            story.until(lambda: story.isr("t") == tuple(sorted((second, follower))), "the second target")
        await_moved(story, "t", second, follower)
        assert story.leader("t") == second
        story.settle()


def test_a_target_that_dies_on_the_way_is_waited_for():
    with Story(brokers=4) as story:
        leader, follower, target = others(story)[:3]
        story.create("t", (leader, follower))
        story.load("t")
        story.await_acks()
        with apart(story, target, leader):
            assert move(story, "t", (target, follower)) == ErrorCode.NONE
            story.until(lambda: story.context(target).logs.get("t", 0), "the new replica")
            story.kill(target)
        story.until(lambda: not story.is_registered(target), "it to be gone", FOUND_DEAD_S)
        story.pass_time(5)
        assert moving(story) == ["t"]
        assert (story.leader("t"), story.isr("t")) == (leader, tuple(sorted((leader, follower))))
        story.await_acks()
        story.start(target)
        await_moved(story, "t", target, follower)
        assert story.leader("t") == target
        story.settle()


def test_a_leader_that_dies_on_the_way_is_replaced_from_the_isr_and_the_move_goes_on():
    with Story(brokers=4, min_insync_replicas="1") as story:
        leader, follower, target = others(story)[:3]
        story.create("t", (leader, follower))
        story.load("t")
        story.await_acks()
        with apart(story, target, leader):
            assert move(story, "t", (target, follower)) == ErrorCode.NONE
            story.until(lambda: story.context(target).logs.get("t", 0), "the new replica")
            story.kill(leader)
        story.until(lambda: story.leader("t") == follower, "another leader", FOUND_DEAD_S + 0.5)
        story.until(lambda: story.isr("t") == tuple(sorted((target, follower))), "the target to be in sync")
        story.start(leader)
        await_moved(story, "t", target, follower)
        assert story.leader("t") == follower
        story.settle()


def test_what_cannot_be_moved_is_refused():
    """To a broker that is down, from a topic that is being deleted, of a partition that is not there."""
    with Story(brokers=4) as story:
        leader, follower, target = others(story)[:3]
        story.create("t", (leader, follower))
        story.create("gone", (leader, target))
        story.kill(target)
        story.until(lambda: not story.is_registered(target), "it to be gone", FOUND_DEAD_S)
        story.until(lambda: target not in story.image(story.controller()).brokers, "the controller to know")
        assert move(story, "t", (target, leader)) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert move(story, "t", (leader, leader)) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert move(story, "t", (-1, leader)) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert move(story, "t", ()) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        story.begin_delete("gone")
        story.until(lambda: "/admin/delete_topics/gone" in story.tree.nodes, "the marker")
        assert move(story, "gone", (leader, follower)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert move(story, "nowhere", (leader,)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert assignment(story, "t") == ((leader, follower), (), ())
        story.settle()


def limit_copying(story, topic, rate):
    """Replicas of a topic that are not in sync are copied with so many bytes a second; None: no limit."""
    kind = m.IncrementalAlterConfigsRequest
    keys = "leader.replication.throttled", "follower.replication.throttled"

    def change(asked, resource_type, name, suffix, value):
        configs = [
            kind.AlterableConfig(
                name=f"{key}.{suffix}",
                config_operation=int(rate is None),
                value=None if rate is None else value,
            )
            for key in keys
        ]
        resource = kind.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)
        answer = story.ask(asked, kind(resources=[resource]))
        assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]

    change(story.controller(), 2, topic, "replicas", "*")
    for number in story.machines:
        change(number, 4, str(number), "rate", str(rate))


def test_a_throttled_move_stays_under_its_rate_and_holds_nobody_up_who_is_in_sync():
    """The rate is measured over ten seconds: so much may go at once."""
    rate, batches, batch_bytes = 10_000, 80, 4_000
    with Story(brokers=4, replica_fetch_max_bytes="4500", replica_fetch_response_max_bytes="4500") as story:
        leader, follower, target = others(story)[:3]
        story.create("t", (leader, follower))
        for _ in range(batches):
            assert story.produce(leader, "t", bytes(batch_bytes)) == ErrorCode.NONE
        limit_copying(story, "t", rate)
        story.pass_time(12)  # what was copied in sync counts, too
        began_s = story.now_s
        assert move(story, "t", (leader, follower, target)) == ErrorCode.NONE
        story.until(lambda: story.context(target).logs.get("t", 0), "the new replica")
        copied = story.replica(target, "t").log
        while target not in story.isr("t"):
            seconds = story.now_s - began_s
            assert copied.size_bytes <= rate * (seconds + 10) + 2 * (batch_bytes + 500), seconds
            asked_s = story.now_s
            assert story.produce(leader, "t", b"in sync") == ErrorCode.NONE
            assert story.now_s - asked_s < 0.5
            assert {leader, follower} <= set(story.isr("t"))
            story.pass_time(0.5)
        assert story.now_s - began_s > batches * batch_bytes / rate - 10
        await_moved(story, "t", leader, follower, target)
        limit_copying(story, "t", None)
        story.settle()

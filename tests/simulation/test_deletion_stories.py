"""Topics are deleted, and grow, while brokers are away and partitions are being moved."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.metadata import paths
from tests.simulation.story import SESSION_S, TICK_S, Story
from tests.simulation.test_move_stories import apart, await_moved, move, moving, others

pytestmark = pytest.mark.xdist_group("simulation: stories")

FOUND_DEAD_S = SESSION_S + TICK_S


def marker(topic):
    return f"/admin/delete_topics/{topic}"


def grow(story, topic, count):
    """The error with which more partitions are answered."""
    kind = m.CreatePartitionsRequest
    wanted = kind.CreatePartitionsTopic(name=topic, count=count, assignments=None)
    return story.ask(story.controller(), kind(topics=[wanted], timeout_ms=5_000)).results[0].error_code


def create_again(story, topic, replicas):
    """The answer of the controller to its creation."""
    request = story._creation(topic, (replicas,), {})
    return story.ask(story.controller(), request).topics[0]


def is_known(story, number, topic):
    """Whether a broker tells clients of it."""
    names = [m.MetadataRequest.MetadataRequestTopic(name=topic)]
    request = m.MetadataRequest(topics=names, allow_auto_topic_creation=False)
    error = story.ask(number, request).topics[0].error_code
    assert error in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return error == ErrorCode.NONE


def test_a_topic_with_a_replica_that_is_down_is_gone_for_clients_and_its_name_free_when_it_is_back():
    with Story() as story:
        away = others(story)[0]
        live = [number for number in (1, 2, 3) if number != away]
        story.create("t", (*live, away))
        first_id = story.topic_ids["t"]
        assert story.produce(live[0], "t", b"old") == ErrorCode.NONE
        story.kill(away)
        story.until(lambda: not story.is_registered(away), "it to be gone", FOUND_DEAD_S)
        story.begin_delete("t")
        story.until(
            lambda: not any(is_known(story, number, "t") for number in live), "clients not to see it", 2
        )
        story.until(
            lambda: all(story.context(number).logs.get("t", 0) is None for number in live),
            "the logs of the others to go",
            within_s=2,
        )
        story.pass_time(5)
        assert marker("t") in story.tree.nodes
        refused = create_again(story, "t", tuple(live))
        assert refused.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert refused.error_message == "Topic 't' is marked for deletion."
        story.start(away)
        story.until(lambda: paths.topic("t") not in story.tree.nodes, "the deletion to end")
        story.until(lambda: marker("t") not in story.tree.nodes, "the marker to go", within_s=1)
        assert story.context(away).logs.get("t", 0) is None
        del story.topic_ids["t"]
        story.create("t", (*live, away))
        assert story.topic_ids["t"] != first_id
        assert story.state("t").leader_epoch == 0
        assert story.replica(away, "t").log.end_offset == 0


def test_a_topic_that_is_being_moved_is_served_until_that_is_over_and_deleted_then():
    with Story(brokers=4) as story:
        leader, follower, target = others(story)[:3]
        story.create("t", (leader, follower))
        with apart(story, target, leader):
            assert move(story, "t", (target, follower)) == ErrorCode.NONE
            story.until(lambda: story.context(target).logs.get("t", 0), "the new replica")
            story.begin_delete("t")
            story.until(lambda: marker("t") in story.tree.nodes, "the marker")
            story.pass_time(3)
            assert moving(story) == ["t"]
            assert is_known(story, leader, "t")
            assert story.produce(leader, "t", b"still") == ErrorCode.NONE
        story.until(lambda: paths.topic("t") not in story.tree.nodes, "the deletion")
        story.until(lambda: marker("t") not in story.tree.nodes, "the marker to go", within_s=1)
        for number in story.machines:
            assert story.context(number).logs.get("t", 0) is None
        story.settle()


def test_a_topic_does_not_grow_while_it_is_moved_and_keeps_its_records_when_it_does():
    with Story(brokers=4) as story:
        leader, follower, target = others(story)[:3]
        story.create("t", (leader, follower))
        assert story.produce(leader, "t", b"old") == ErrorCode.NONE
        with apart(story, target, leader):
            assert move(story, "t", (target, follower)) == ErrorCode.NONE
            story.until(lambda: story.context(target).logs.get("t", 0), "the new replica")
            assert grow(story, "t", 3) == ErrorCode.REASSIGNMENT_IN_PROGRESS
        await_moved(story, "t", target, follower)
        assert grow(story, "t", 3) == ErrorCode.NONE
        for index in (1, 2):
            assert story.leader("t", index) > 0
            assert len(story.isr("t", index)) == 2
        story.settle()
        assert story.values(target, "t") == [b"old"]

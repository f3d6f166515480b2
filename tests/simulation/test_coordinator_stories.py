"""Coordinators of groups while brokers come and go."""

from __future__ import annotations

import pytest

from coordinator.placement import partition_for
from protocol import messages as m
from protocol.errors import ErrorCode
from tests.simulation.story import SESSION_S, TICK_S, Story

pytestmark = pytest.mark.xdist_group("simulation: stories")

FOUND_DEAD_S = SESSION_S + TICK_S
OFFSETS = "__consumer_offsets"
GROUPS = ("g2", "g0", "g1")
"""By the partition of three in which they live."""


def coordinator(story, number, group):
    """(error, broker id) as a broker tells."""
    answer = story.ask(number, m.FindCoordinatorRequest(coordinator_keys=[group], key_type=0))
    [found] = answer.coordinators
    return found.error_code, found.node_id


def commit(story, number, group, offset):
    kind = m.OffsetCommitRequest
    partition = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = kind.OffsetCommitRequestTopic(name="t", topic_id=story.topic_ids["t"], partitions=[partition])
    answer = story.ask(
        number, kind(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=[topic])
    )
    return answer.topics[0].partitions[0].error_code


def fetch(story, number, group):
    """(error of the group, committed offset)."""
    kind = m.OffsetFetchRequest
    topic = kind.OffsetFetchRequestTopics(name="t", topic_id=story.topic_ids["t"], partition_indexes=[0])
    answer = story.ask(number, kind(groups=[kind.OffsetFetchRequestGroup(group_id=group, topics=[topic])]))
    [group] = answer.groups
    return group.error_code, [each.committed_offset for topic in group.topics for each in topic.partitions]


def await_committed(story, number, group, offset):
    """The coordinator of a group has loaded what it committed."""
    story.until(
        lambda: fetch(story, number, group) == (ErrorCode.NONE, [offset]), f"broker {number} to tell {offset}"
    )


def await_coordinators(story, number, wanted):
    """A broker names these for the groups; -1: nobody now."""
    story.until(
        lambda: [coordinator(story, number, group)[1] for group in GROUPS] == wanted,
        f"broker {number} to name {wanted}",
    )


def hear_counts(story, number, counts):
    """Note how many partitions of the offsets' topic a broker that has just started is told of."""
    story.until(lambda: story.is_registered(number), "it to be back")
    story.context(number).holder.subscribe(
        lambda _, new: counts.append(len(new.topics[OFFSETS].partitions) if OFFSETS in new.topics else 0)
    )


def test_a_broker_that_is_told_of_some_partitions_only_takes_no_group_for_its_own():
    """A controller that begins its office tells of what is online first. A broker that has just started then
    hears of the offsets' topic without the partition whose only replica is down.
    """
    assert [partition_for(group, 3) for group in GROUPS] == [0, 1, 2]
    with Story(min_insync_replicas="1", offsets_topic_num_partitions="3") as story:
        story.create("t", (1, 2, 3))
        story.create(OFFSETS, (1,), (2,), (3,))
        for number, group in enumerate(GROUPS, 1):
            await_coordinators(story, number, [1, 2, 3])
            assert commit(story, number, group, number * 10) == ErrorCode.NONE
        story.kill(1, 2, 3)
        story.until(lambda: story.registrations() == {}, "all to be gone", FOUND_DEAD_S)
        counts = []
        for number in (1, 2):
            story.start(number)
            hear_counts(story, number, counts)
        story.until(lambda: story.machines[1].serving and story.machines[2].serving, "both to serve")
        for number in (1, 2):
            await_coordinators(story, number, [1, 2, -1])
            await_committed(story, number, GROUPS[number - 1], number * 10)
            assert fetch(story, number, GROUPS[2]) == (ErrorCode.NOT_COORDINATOR, [])
            assert commit(story, number, GROUPS[2], 99) == ErrorCode.NOT_COORDINATOR
        assert {1, 2} & set(counts), "one was told of some partitions before the others"
        story.start(3)
        for number in (1, 2, 3):
            story.until(lambda: story.machines[3].serving, "the third to serve")
            await_coordinators(story, number, [1, 2, 3])
        await_committed(story, 3, GROUPS[2], 30)

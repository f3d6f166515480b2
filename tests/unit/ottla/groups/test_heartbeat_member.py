"""A membership of the newer protocol against a scripted coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.client import ClientError, KafkaClient
from ottla.groups.heartbeat_member import HeartbeatMember, HeartbeatMemberSettings
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.waiting import wait_until
from tests.unit.ottla.groups.scripted_group import ScriptedGroup, topic_id

Ask = m.ConsumerGroupHeartbeatRequest
Answer = m.ConsumerGroupHeartbeatResponse


def told(epoch: int, *partitions: int, topic: str = "t") -> Answer:
    part = Answer.TopicPartitions(topic_id=topic_id(topic), partitions=list(partitions))
    assignment = Answer.Assignment(topic_partitions=[part] if partitions else [])
    return Answer(member_id="m", member_epoch=epoch, heartbeat_interval_ms=20, assignment=assignment)


def same(epoch: int) -> Answer:
    return Answer(member_id="m", member_epoch=epoch, heartbeat_interval_ms=20, assignment=None)


def refused(error: E) -> Answer:
    return Answer(error_code=error, error_message="said the broker")


@contextmanager
def member_of(*answers: Answer, **settings: Any) -> Iterator[tuple[ScriptedGroup, HeartbeatMember]]:
    """`answers` to heartbeats, the last one again and again."""
    with ScriptedGroup({Ask: list(answers)}) as group, KafkaClient(group.address) as client:
        member = HeartbeatMember(client, HeartbeatMemberSettings("g", **settings))
        yield group, member
        member.leave()


def join(member: HeartbeatMember, *topics: str) -> list[tuple[str, int]]:
    return member.join(topics or ("t",), lambda names: {})


def owned(ask: Ask) -> list[int] | None:
    if ask.topic_partitions is None:
        return None
    return [number for each in ask.topic_partitions for number in each.partitions]


def test_it_joins_with_everything_and_says_what_it_took() -> None:
    with member_of(told(1, 0, 1), told(1, 0, 1), same(1), remote_assignor="range") as (group, member):
        assert join(member) == [("t", 0), ("t", 1)]
        assert (member.generation, member.rejoins, member.lost) == (1, False, False)
        first, second = group.asked(Ask)[:2]
        assert (first.member_epoch, first.member_id) == (0, member.member_id)
        assert len(member.member_id) == 36
        assert (first.subscribed_topic_names, first.server_assignor) == (["t"], "range")
        assert (first.rebalance_timeout_ms, owned(first)) == (300_000, [])
        assert (second.member_epoch, owned(second)) == (1, [0, 1])


def test_heartbeats_say_nothing_until_the_assignment_is_another() -> None:
    with member_of(told(1, 0, 1), told(1, 0, 1), same(1), same(1), told(1, 0), told(2, 0)) as (group, member):
        join(member)
        wait_until(lambda: member.rejoins, "the heartbeat to say so")
        beats = group.asked(Ask)[2:]
        assert all(owned(each) is None and each.subscribed_topic_names is None for each in beats)
        assert not member.lost
        count = len(group.asked(Ask))
        wait_until(lambda: len(group.asked(Ask)) > count, "it to be alive still")
        assert join(member) == [("t", 0)]
        assert member.generation == 2
        assert [0] in [owned(each) for each in group.asked(Ask)[count:]]


def test_nothing_at_first_and_topics_that_have_gone() -> None:
    with member_of(told(1), same(1)) as (_, member):
        assert join(member) == []
    with member_of(told(1, 0, topic="gone"), told(1, 0, topic="gone")) as (_, member):
        assert join(member) == []


@pytest.mark.parametrize("error", [E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_member_that_is_fenced_has_lost_its_partitions_and_joins_anew(error: E) -> None:
    with member_of(told(3, 0), told(3, 0), refused(error), told(5, 1), told(5, 1)) as (group, member):
        join(member)
        member_id = member.member_id
        wait_until(lambda: member.rejoins, "the heartbeat to say so")
        assert (member.lost, member.generation) == (True, 0)
        asked = len(group.asked(Ask))
        assert join(member) == [("t", 1)]
        again = group.asked(Ask)[asked]
        assert (again.member_epoch, again.member_id, owned(again)) == (0, member_id, [])


@pytest.mark.parametrize(
    "error",
    [E.UNRELEASED_INSTANCE_ID, E.GROUP_MAX_SIZE_REACHED, E.UNSUPPORTED_ASSIGNOR, E.GROUP_ID_NOT_FOUND],
)
def test_what_will_not_get_better_ends_it(error: E) -> None:
    with member_of(refused(error)) as (_, member), pytest.raises(ClientError, match="said the broker"):
        join(member)


def test_a_coordinator_that_loads_is_asked_again() -> None:
    with member_of(refused(E.COORDINATOR_LOAD_IN_PROGRESS), told(1, 0), same(1)) as (_, member):
        assert join(member) == [("t", 0)]


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_it_leaves_for_good_or_for_a_while(instance_id: str | None, epoch: int) -> None:
    with member_of(told(1, 0), same(1), instance_id=instance_id) as (group, member):
        join(member)
        member.leave()
        last = group.asked(Ask)[-1]
        assert (last.member_epoch, last.instance_id) == (epoch, instance_id)
        count = len(group.asked(Ask))
    assert len(group.asked(Ask)) == count


def test_who_never_joined_does_not_leave() -> None:
    with member_of(same(1)) as (group, member):
        member.leave()
        assert group.asked(Ask) == []


def committed(error: E) -> m.OffsetCommitResponse:
    part = m.OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=0, error_code=error)
    topic = m.OffsetCommitResponse.OffsetCommitResponseTopic(name="t", partitions=[part])
    return m.OffsetCommitResponse(topics=[topic])


def test_commits_carry_the_epoch_and_a_stale_one_asks_for_news() -> None:
    with member_of(told(4, 0), same(4)) as (group, member):
        group.answers[m.OffsetCommitRequest] = [committed(E.NONE), committed(E.STALE_MEMBER_EPOCH)]
        join(member)
        assert member.commit({("t", 0): (5, 2)})
        (asked,) = group.asked(m.OffsetCommitRequest)
        assert (asked.generation_id_or_member_epoch, asked.member_id) == (4, member.member_id)
        assert not member.commit({("t", 0): (6, 2)})
        assert (member.rejoins, member.lost) == (True, False)

"""A membership against a scripted coordinator."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.client import ClientError, KafkaClient
from ottla.groups.assignors import subscription_blob
from ottla.groups.descriptions import assigned_places
from ottla.groups.member import Member, MemberSettings, assignment_blob
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.support.waiting import wait_until
from tests.unit.ottla.groups.scripted_group import ScriptedGroup


def joined(
    generation: int = 1, leader: str = "m", members: tuple[str, ...] = ("m", "n")
) -> m.JoinGroupResponse:
    return m.JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
        member_id="m",
        members=[
            m.JoinGroupResponse.JoinGroupResponseMember(
                member_id=each, metadata=subscription_blob(["t"], "range", -1)
            )
            for each in members
            if leader == "m"
        ],
    )


def synced(*places: tuple[str, int]) -> m.SyncGroupResponse:
    return m.SyncGroupResponse(assignment=assignment_blob(places))


def refused(error: ErrorCode, member_id: str = "") -> m.JoinGroupResponse:
    return m.JoinGroupResponse(error_code=error, member_id=member_id)


def counts(topics: object) -> dict[str, int]:
    return {"t": 4}


BEATS = m.HeartbeatResponse()


@contextmanager
def member_of(answers: dict, **settings: object) -> Iterator[tuple[ScriptedGroup, Member]]:
    fallback = {
        m.HeartbeatRequest: [BEATS],
        m.LeaveGroupRequest: [m.LeaveGroupResponse()],
        m.JoinGroupRequest: [joined()],
        m.SyncGroupRequest: [synced(("t", 0))],
    }
    with ScriptedGroup({**fallback, **answers}) as group, KafkaClient(group.address) as client:
        member = Member(client, MemberSettings("g", heartbeat_interval_ms=20, **settings))
        yield group, member
        member.leave()


def test_a_leader_assigns_and_everybody_learns_from_sync() -> None:
    with member_of({}) as (group, member):
        assert member.join(["t"], counts) == [("t", 0)]
        assert (member.member_id, member.generation, member.rejoins) == ("m", 1, False)
        (sync,) = group.asked(m.SyncGroupRequest)
        assert {each.member_id: assigned_places(each.assignment) for each in sync.assignments} == {
            "m": [("t", 0), ("t", 1)],
            "n": [("t", 2), ("t", 3)],
        }
        (join,) = group.asked(m.JoinGroupRequest)
        assert [each.name for each in join.protocols] == ["range", "cooperative-sticky"]
        assert (join.session_timeout_ms, join.rebalance_timeout_ms) == (45_000, 300_000)


def test_a_follower_sends_no_assignments() -> None:
    with member_of({m.JoinGroupRequest: [joined(leader="n")]}) as (group, member):
        member.join(["t"], counts)
        assert group.asked(m.SyncGroupRequest)[0].assignments == []


def test_it_joins_again_with_the_id_it_is_given_and_without_one_that_is_unknown() -> None:
    answers = [
        refused(ErrorCode.MEMBER_ID_REQUIRED, "given"),
        refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        refused(ErrorCode.UNKNOWN_MEMBER_ID),
        joined(),
    ]
    with member_of({m.JoinGroupRequest: answers}) as (group, member):
        member.join(["t"], counts)
        assert [each.member_id for each in group.asked(m.JoinGroupRequest)] == ["", "given", "given", ""]


def test_a_rebalance_during_sync_begins_anew() -> None:
    again = m.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    answers = {m.JoinGroupRequest: [joined(1), joined(2)], m.SyncGroupRequest: [again, synced()]}
    with member_of(answers) as (_, member):
        assert member.join(["t"], counts) == []
        assert member.generation == 2


@pytest.mark.parametrize(
    "error",
    [ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.FENCED_INSTANCE_ID],
)
def test_what_will_not_get_better_ends_it(error) -> None:
    with member_of({m.JoinGroupRequest: [refused(error)]}) as (_, member):
        with pytest.raises(ClientError) as refusal:
            member.join(["t"], counts)
        assert refusal.value.error == error


def test_a_join_that_takes_too_long_is_a_timeout() -> None:
    release = threading.Event()

    def never(request: m.JoinGroupRequest) -> None:
        release.wait(60)

    with member_of({m.JoinGroupRequest: never}) as (_, member):
        with pytest.raises(TimeoutError):
            member.join(["t"], counts, timeout_s=0.1)
        release.set()


def test_heartbeats_go_on_until_the_group_rebalances() -> None:
    answers = [BEATS, BEATS, m.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)]
    with member_of({m.HeartbeatRequest: answers}) as (group, member):
        member.join(["t"], counts)
        wait_until(lambda: member.rejoins, "the heartbeat to say so")
        assert (member.lost, len(group.asked(m.HeartbeatRequest))) == (False, 3)
        beat = group.asked(m.HeartbeatRequest)[0]
        assert (beat.group_id, beat.generation_id, beat.member_id) == ("g", 1, "m")


def test_a_member_that_is_unknown_has_lost_its_partitions() -> None:
    answers = [m.HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)]
    with member_of({m.HeartbeatRequest: answers}) as (_, member):
        member.join(["t"], counts)
        wait_until(lambda: member.rejoins, "the heartbeat to say so")
        assert (member.lost, member.member_id) == (True, "")


def test_a_fenced_member_is_told_by_check() -> None:
    answers = [m.HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)]
    with member_of({m.HeartbeatRequest: answers}, instance_id="i") as (group, member):
        member.check()
        member.join(["t"], counts)
        wait_until(lambda: not member._heart.is_alive(), "the heart to stop")
        with pytest.raises(ClientError):
            member.check()
        member.leave()
        assert group.asked(m.LeaveGroupRequest) == []  # a static member stays


def committed(error: ErrorCode) -> m.OffsetCommitResponse:
    part = m.OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=0, error_code=error)
    topic = m.OffsetCommitResponse.OffsetCommitResponseTopic(name="t", partitions=[part])
    return m.OffsetCommitResponse(topics=[topic])


def test_commits_carry_the_generation_and_wait_for_rebalances() -> None:
    answers = [committed(ErrorCode.NONE), committed(ErrorCode.REBALANCE_IN_PROGRESS)]
    with member_of({m.OffsetCommitRequest: answers}) as (group, member):
        member.join(["t"], counts)
        assert member.commit({})
        assert member.commit({("t", 0): (5, 2)})
        asked = group.asked(m.OffsetCommitRequest)[0]
        assert (asked.generation_id_or_member_epoch, asked.member_id) == (1, "m")
        (part,) = asked.topics[0].partitions
        assert (part.committed_offset, part.committed_leader_epoch) == (5, 2)
        assert not member.commit({("t", 0): (6, 2)})
        assert member.rejoins


def test_a_commit_that_is_too_large_is_told() -> None:
    with member_of({m.OffsetCommitRequest: [committed(ErrorCode.OFFSET_METADATA_TOO_LARGE)]}) as (_, member):
        member.join(["t"], counts)
        with pytest.raises(ClientError):
            member.commit({("t", 0): (5, -1)})


@pytest.mark.parametrize(("newest", "in_list"), [(5, True), (2, False)])
def test_it_leaves_in_the_form_of_the_broker(newest, in_list) -> None:
    with ScriptedGroup(
        {
            m.JoinGroupRequest: [joined()],
            m.SyncGroupRequest: [synced()],
            m.LeaveGroupRequest: [m.LeaveGroupResponse()],
        },
        {ApiKey.LEAVE_GROUP: (0, newest)},
    ) as group:
        with KafkaClient(group.address) as client:
            member = Member(client, MemberSettings("g"))
            member.join(["t"], counts)
            member.leave()
        (asked,) = group.asked(m.LeaveGroupRequest)
        assert [each.member_id for each in asked.members] == (["m"] if in_list else [])
        assert asked.member_id == ("" if in_list else "m")

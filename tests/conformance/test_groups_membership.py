"""Joining, syncing, heartbeats and leaving in classic groups (coordinators.md 3.3, 3.5, 7.14 to 7.30)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.group_member import Member, form, reach, settle
from tests.support.waiting import wait_until

NewMember = Callable[..., Member]


@pytest.mark.parametrize("timeout_ms", [5999, 1_800_001, 0, -1])
def test_a_session_timeout_out_of_bounds_leaves_no_group(new_member: NewMember, timeout_ms: int) -> None:
    member = new_member(session_timeout_ms=timeout_ms)
    answer = member.join()
    assert answer.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert (answer.generation_id, answer.leader, answer.protocol_name, answer.members) == (-1, "", None, [])
    assert member.describe(6).error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("timeout_ms", [6000, 1_800_000])
def test_the_bounds_belong_to_it(new_member: NewMember, timeout_ms: int) -> None:
    assert new_member(session_timeout_ms=timeout_ms).join().error_code == ErrorCode.MEMBER_ID_REQUIRED


@pytest.mark.parametrize("version", range(10))
def test_an_unknown_member_id_makes_no_group(new_member: NewMember, version: int) -> None:
    member = new_member()
    answer = member.join(version, member_id="somebody")
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.member_id == "somebody"
    assert answer.protocol_name == (None if version >= 7 else "")
    assert (answer.generation_id, answer.leader, answer.members) == (-1, "", [])
    assert member.describe(6).error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", range(10))
def test_every_version_joins_syncs_beats_and_leaves(new_member: NewMember, version: int) -> None:
    member = new_member(client_id="me")
    answer = member.joined(member.post_enter(version))
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.member_id == answer.leader == member.id
    assert member.id.startswith("me-")
    assert len(member.id) == len("me-") + 36
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert not answer.skip_assignment
    [listed] = answer.members
    assert (listed.member_id, listed.group_instance_id, bytes(listed.metadata)) == (member.id, None, b"meta")
    synced = member.sync({member.id: b"part"}, min(version, 5))
    assert (synced.error_code, bytes(synced.assignment)) == (0, b"part")
    if version >= 5:
        assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")
    assert member.heartbeat(min(version, 4)) == ErrorCode.NONE
    assert member.leave(min(version, 5)) == ErrorCode.NONE
    assert member.describe().group_state == "Empty"


def test_two_that_have_no_id_get_two(new_member: NewMember) -> None:
    one, other = new_member(), new_member()
    assert one.get_id() != other.get_id()
    assert one.describe().members == []


def test_an_id_that_was_handed_out_is_no_member(new_member: NewMember) -> None:
    member = new_member()
    member.get_id()
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    sync = member.sync({}, protocol_name="range")
    assert sync.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert sync.assignment == b""
    assert member.leave() == ErrorCode.NONE
    assert member.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.join().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unused_id_holds_the_join_phase_open_until_it_leaves(new_member: NewMember) -> None:
    member, unused = new_member(), new_member()
    settle(member)
    unused.get_id()
    again = member.post_join()
    reach(unused, "PreparingRebalance")
    assert unused.leave() == ErrorCode.NONE
    answer = member.joined(again)
    assert (answer.error_code, answer.generation_id, len(answer.members)) == (0, 2, 1)


def test_followers_wait_for_the_leader(new_member: NewMember) -> None:
    members = [new_member() for _ in range(3)]
    leader = form(*members)
    followers = [member for member in members if member is not leader]
    waiting = followers[0].post_sync()
    assert followers[1].heartbeat() == ErrorCode.NONE
    assert followers[1].describe().group_state == "CompletingRebalance"
    parts = {member.id: b"part " + member.id.encode() for member in members}
    assert leader.sync(parts).assignment == parts[leader.id]
    assert followers[0].wire.receive(waiting).assignment == parts[followers[0].id]
    assert followers[1].sync().assignment == parts[followers[1].id]


def test_only_the_leader_sees_the_members(new_member: NewMember) -> None:
    one, other = new_member(protocols=[("range", b"1")]), new_member(protocols=[("range", b"2")])
    one.enter()
    posted = other.post_enter()
    wait_until(lambda: len(one.describe().members) == 2, "both members")
    answers = {one: one.join(), other: other.joined(posted)}
    leader = one if one.leads else other
    assert {member.member_id: member.metadata for member in answers[leader].members} == {
        one.id: b"1",
        other.id: b"2",
    }
    [follower] = {one, other} - {leader}
    assert answers[follower].members == []
    assert answers[follower].leader == leader.id


def test_whom_the_leader_leaves_out_gets_nothing(new_member: NewMember) -> None:
    members = [new_member() for _ in range(2)]
    leader = form(*members)
    [follower] = set(members) - {leader}
    waiting = follower.post_sync()
    assert leader.sync({leader.id: b"all", "stranger": b"x"}).assignment == b"all"
    answer = follower.wire.receive(waiting)
    assert (answer.error_code, answer.assignment, answer.protocol_name) == (0, b"", "range")


def test_assignments_of_followers_do_not_count(new_member: NewMember) -> None:
    members = [new_member() for _ in range(2)]
    leader = form(*members)
    [follower] = set(members) - {leader}
    waiting = follower.post_sync({follower.id: b"mine"})
    assert leader.sync({leader.id: b"l", follower.id: b"f"}).assignment == b"l"
    assert follower.wire.receive(waiting).assignment == b"f"


def test_old_and_future_generations(new_member: NewMember) -> None:
    member = new_member()
    settle(member)
    for generation in (0, 2, -1):
        assert member.heartbeat(generation_id=generation) == ErrorCode.ILLEGAL_GENERATION
        assert member.sync({}, generation_id=generation).error_code == ErrorCode.ILLEGAL_GENERATION
    assert member.heartbeat(member_id="stranger") == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.heartbeat(member_id="stranger", generation_id=7) == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.heartbeat() == ErrorCode.NONE


def test_a_generation_for_each_rebalance(new_member: NewMember) -> None:
    one, other = new_member(), new_member()
    settle(one)
    assert one.generation == 1
    posted = other.post_enter()
    reach(one, "PreparingRebalance")
    assert one.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert one.sync().error_code == ErrorCode.REBALANCE_IN_PROGRESS
    one.join()
    other.joined(posted)
    assert (one.generation, other.generation) == (2, 2)


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "error"),
    [
        ("consumer", "range", ErrorCode.NONE),
        ("connect", "range", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", "other", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (None, "range", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", None, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_version_5_of_sync_names_the_protocol(
    new_member: NewMember, protocol_type: str | None, protocol_name: str | None, error: ErrorCode
) -> None:
    member = new_member()
    settle(member)
    answer = member.sync({}, protocol_type=protocol_type, protocol_name=protocol_name)
    assert answer.error_code == error
    assert (answer.protocol_name is None) == (error != 0)


def test_a_join_that_says_nothing_new(new_member: NewMember) -> None:
    one, other = new_member(), new_member()
    leader = form(one, other)
    [follower] = {one, other} - {leader}
    for member in (leader, follower):  # CompletingRebalance: the first answer may have been lost
        answer = member.join()
        assert (answer.error_code, answer.generation_id) == (0, 2)
        assert len(answer.members) == (2 if member is leader else 0)
    waiting = follower.post_sync()
    leader.sync({})
    assert follower.wire.receive(waiting).error_code == 0
    answer = follower.join()  # Stable
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 2, leader.id)
    assert follower.describe().group_state == "Stable"
    posted = leader.post_join()
    reach(follower, "PreparingRebalance")
    assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    follower.join()
    assert leader.joined(posted).generation_id == 3


def test_changed_metadata_is_a_rebalance(new_member: NewMember) -> None:
    one, other = new_member(), new_member()
    leader = settle(one, other)
    [follower] = {one, other} - {leader}
    follower.protocols = [("range", b"changed")]
    posted = follower.post_join()
    reach(leader, "PreparingRebalance")
    answer = leader.join()
    assert follower.joined(posted).generation_id == answer.generation_id == 3
    metadata = {member.member_id: member.metadata for member in answer.members}
    assert metadata == {leader.id: b"meta", follower.id: b"changed"}


def test_changed_metadata_before_the_sync_is_a_rebalance(new_member: NewMember) -> None:
    one, other = new_member(), new_member()
    leader = form(one, other)
    [follower] = {one, other} - {leader}
    waiting = follower.post_sync()
    follower_again = new_member()
    follower_again.id, follower_again.protocols = follower.id, [("range", b"changed")]
    wait_until(lambda: leader.describe().group_state == "CompletingRebalance", "the generation")
    posted = follower_again.post_join()
    assert follower.wire.receive(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    leader.join()
    assert follower_again.joined(posted).generation_id == 3


def test_the_leader_leaves_before_it_syncs(new_member: NewMember) -> None:
    one, other = new_member(), new_member()
    leader = form(one, other)
    [follower] = {one, other} - {leader}
    waiting = follower.post_sync()
    reach(leader, "CompletingRebalance")
    assert leader.leave() == ErrorCode.NONE
    assert follower.wire.receive(waiting).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = follower.join()
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 3, follower.id)


def test_a_second_request_for_a_parked_join_and_the_answer(new_member: NewMember) -> None:
    """The new connection of a member that lost its first one gets the answer."""
    member, other = new_member(), new_member()
    settle(member)
    other.post_enter()
    reach(member, "PreparingRebalance")
    again = new_member()
    again.id = other.id
    posted = again.post_join()
    member.join()
    assert again.joined(posted).error_code == 0


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [
        ("connect", [("range", b"")]),
        ("consumer", [("other", b"")]),
        ("", [("range", b"")]),
        ("consumer", []),
    ],
)
def test_protocols_that_do_not_fit(
    new_member: NewMember, protocol_type: str, protocols: list[tuple[str, bytes]]
) -> None:
    member, stranger = new_member(), new_member(protocol_type=protocol_type, protocols=protocols)
    settle(member)
    assert stranger.join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert member.heartbeat() == ErrorCode.NONE


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", [("range", b"")]), ("consumer", [])])
def test_a_group_begins_with_a_protocol(
    new_member: NewMember, protocol_type: str, protocols: list[tuple[str, bytes]]
) -> None:
    member = new_member(protocol_type=protocol_type, protocols=protocols)
    assert member.join().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert member.describe().members == []


@pytest.mark.parametrize("protocol_type", ["connect", "sr", "custom", "x y", "Consumer"])
def test_any_protocol_type_will_do(new_member: NewMember, protocol_type: str) -> None:
    members = [new_member(protocol_type=protocol_type, protocols=[("any", b"")]) for _ in range(2)]
    settle(*members)
    found = members[0].describe()
    assert (found.protocol_type, found.protocol_data, found.group_state) == (protocol_type, "any", "Stable")


def test_the_vote(new_member: NewMember) -> None:
    orders = [("range", "rr"), ("rr", "range"), ("rr", "range", "alone")]
    members = [new_member(protocols=[(name, name.encode()) for name in order]) for order in orders]
    leader = form(*members)
    assert leader.protocol == "rr"
    answer = leader.join()
    assert [member.metadata for member in answer.members] == [b"rr"] * 3


def test_the_last_one_leaves(new_member: NewMember) -> None:
    member, later = new_member(), new_member()
    settle(member)
    assert member.leave() == ErrorCode.NONE
    found = member.describe()
    assert (found.group_state, found.protocol_type, found.protocol_data, found.members) == (
        "Empty",
        "consumer",
        "",
        [],
    )
    assert later.enter().generation_id == 3
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_group_takes_another_protocol_type(new_member: NewMember) -> None:
    member, later = new_member(), new_member(protocol_type="connect", protocols=[("any", b"")])
    settle(member)
    member.leave()
    later.enter()
    assert later.describe().protocol_type == "connect"


def test_requests_to_a_group_that_is_not_there(new_member: NewMember) -> None:
    member = new_member()
    member.id, member.generation = "somebody", 1
    assert member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.sync({}, protocol_name="range").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert member.leave(2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_batch_of_leavers(new_member: NewMember) -> None:
    one, other, static = new_member(), new_member(), new_member(instance_id="i")
    settle(one, other, static)
    identity = m.LeaveGroupRequest.MemberIdentity
    named = [
        (one.id, None, ErrorCode.NONE),
        (one.id, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("stranger", "i", ErrorCode.FENCED_INSTANCE_ID),
        ("", "j", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", "i", ErrorCode.NONE),
        ("", "i", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", None, ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    members = [identity(member_id=id_, group_instance_id=instance) for id_, instance, _ in named]
    answer = other.wire.send(m.LeaveGroupRequest(group_id=other.group, members=members), 5)
    assert answer.error_code == ErrorCode.NONE
    assert [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members] == named
    assert other.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert other.heartbeat(member_id=static.id) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_leaves_while_it_joins(new_member: NewMember) -> None:
    member, other = new_member(), new_member()
    settle(member)
    posted = other.post_enter()
    reach(member, "PreparingRebalance")
    identity = m.LeaveGroupRequest.MemberIdentity(member_id=other.id)
    answer = member.wire.send(m.LeaveGroupRequest(group_id=member.group, members=[identity]), 5)
    assert answer.members[0].error_code == ErrorCode.NONE
    assert other.joined(posted).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_nobody_leaves(new_member: NewMember) -> None:
    member = new_member()
    settle(member)
    answer = member.wire.send(m.LeaveGroupRequest(group_id=member.group, members=[]), 5)
    assert (answer.error_code, answer.members) == (0, [])
    assert member.heartbeat() == ErrorCode.NONE


@pytest.mark.parametrize(
    ("request_body", "version"),
    [
        (m.JoinGroupRequest(session_timeout_ms=10_000, protocol_type="consumer"), 9),
        (m.SyncGroupRequest(protocol_type="consumer", protocol_name="range"), 5),
        (m.HeartbeatRequest(), 4),
        (m.LeaveGroupRequest(), 5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_group_needs_a_name(new_member: NewMember, request_body: Any, version: int) -> None:
    assert new_member().wire.send(request_body, version).error_code == ErrorCode.INVALID_GROUP_ID

"""Static members of classic groups: instance ids that outlive member ids (coordinators.md 3.4)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.group_member import Member, form, reach, settle

NewMember = Callable[..., Member]


def with_leader(new_member: NewMember) -> tuple[Member, Member]:
    """A Stable group of a static leader "i" and a static follower "j"."""
    leader, follower = new_member(instance_id="i"), new_member(instance_id="j")
    settle(leader)
    posted = follower.post_enter()
    reach(leader, "PreparingRebalance")
    leader.join()
    follower.joined(posted)
    assert leader.leads
    parts = {leader.id: b"of i", follower.id: b"of j"}
    waiting = follower.post_sync()
    assert leader.sync(parts).assignment == b"of i"
    assert follower.wire.receive(waiting).assignment == b"of j"
    return leader, follower


def test_a_static_member_needs_no_id_first(new_member: NewMember) -> None:
    member = new_member(instance_id="i")
    answer = member.join()
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assert member.id.startswith("i-")
    [listed] = answer.members
    assert (listed.member_id, listed.group_instance_id) == (member.id, "i")


@pytest.mark.parametrize("version", range(5, 10))
def test_a_follower_comes_back(new_member: NewMember, version: int) -> None:
    leader, follower = with_leader(new_member)
    again = new_member(instance_id="j")
    answer = again.join(version)
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 2, leader.id)
    assert (answer.members, answer.skip_assignment) == ([], False)
    assert again.id.startswith("j-")
    assert again.id != follower.id
    assert again.sync().assignment == b"of j"
    assert leader.heartbeat() == ErrorCode.NONE
    assert follower.heartbeat() == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("version", range(5, 10))
def test_a_leader_comes_back(new_member: NewMember, version: int) -> None:
    leader, follower = with_leader(new_member)
    again = new_member(instance_id="i")
    answer = again.join(version)
    assert (answer.error_code, answer.generation_id) == (0, 2)
    if version >= 9:
        assert (answer.leader, answer.skip_assignment) == (again.id, True)
        assert {member.member_id for member in answer.members} == {again.id, follower.id}
    else:
        assert (answer.leader, answer.skip_assignment, answer.members) == (leader.id, False, [])
    assert again.sync().assignment == b"of i"
    assert follower.heartbeat() == ErrorCode.NONE


def test_the_old_id_is_fenced_everywhere(new_member: NewMember, topic: str) -> None:
    _, old = with_leader(new_member)
    new_member(instance_id="j").enter()
    assert old.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert old.sync().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert old.commit(topic, 1) == ErrorCode.FENCED_INSTANCE_ID
    assert old.join().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert old.leave() == ErrorCode.FENCED_INSTANCE_ID
    old.instance_id = None
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_that_nobody_has(new_member: NewMember, topic: str) -> None:
    leader, _ = with_leader(new_member)
    leader.instance_id = "k"
    assert leader.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.sync().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.commit(topic, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.join().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert leader.leave() == ErrorCode.UNKNOWN_MEMBER_ID


def test_coming_back_before_the_sync_is_a_rebalance(new_member: NewMember) -> None:
    one, other = new_member(instance_id="i"), new_member(instance_id="j")
    leader = form(one, other)
    [follower] = {one, other} - {leader}
    waiting = follower.post_sync()
    reach(leader, "CompletingRebalance")
    again = new_member(instance_id=follower.instance_id)
    posted = again.post_join()
    assert follower.wire.receive(waiting).error_code == ErrorCode.FENCED_INSTANCE_ID
    reach(leader, "PreparingRebalance")
    leader.join()
    assert again.joined(posted).generation_id == 3


def test_coming_back_in_the_join_phase_fences_the_first(new_member: NewMember) -> None:
    leader, follower = with_leader(new_member)
    posted = leader.post_join()
    reach(follower, "PreparingRebalance")
    again = new_member(instance_id="i")
    second = again.post_join()
    assert leader.joined(posted).error_code == ErrorCode.FENCED_INSTANCE_ID
    follower.join()
    assert again.joined(second).generation_id == 3


def test_coming_back_with_another_protocol_is_a_rebalance(new_member: NewMember) -> None:
    both = [("range", b""), ("rr", b"")]
    leader, follower = new_member(protocols=both), new_member(instance_id="j", protocols=both)
    settle(leader, follower)
    again = new_member(instance_id="j", protocols=both[1:])
    posted = again.post_join()
    reach(leader, "PreparingRebalance")
    leader.join()
    answer = again.joined(posted)
    assert (answer.generation_id, answer.protocol_name) == (3, "rr")


def test_coming_back_with_other_topics_is_none(new_member: NewMember) -> None:
    leader, _ = with_leader(new_member)
    again = new_member(instance_id="j", protocols=[("range", b"other")])
    assert again.join().generation_id == 2
    assert leader.heartbeat() == ErrorCode.NONE
    shown = {member.group_instance_id: member.member_metadata for member in leader.describe().members}
    assert shown == {"i": b"meta", "j": b"other"}


def test_one_that_misses_a_rebalance_stays(new_member: NewMember) -> None:
    """What the leader does within the rebalance timeout waits at the broker, each behind the one before."""
    leader, follower = with_leader(new_member)
    leader.rebalance_timeout_ms = follower.rebalance_timeout_ms = 1500
    leader.protocols = [("range", b"changed")]
    joining = leader.post_join()
    syncing = leader.post_sync({}, generation_id=3)
    again = leader.post_join()  # the follower does not take part: the phase ends at the rebalance timeout
    reach(follower, "PreparingRebalance")
    began = time.monotonic()
    follower.join()
    assert leader.joined(joining).generation_id == 3
    assert leader.wire.receive(syncing).error_code == ErrorCode.NONE
    answer = leader.joined(again)
    assert (answer.error_code, answer.generation_id, len(answer.members)) == (0, 4, 2)
    told = follower.heartbeat()
    assert told == ErrorCode.ILLEGAL_GENERATION or time.monotonic() - began > 2 * 1.5  # its sync is awaited


def test_an_administrator_removes_one_by_its_instance(new_member: NewMember) -> None:
    leader, follower = with_leader(new_member)
    identity = m.LeaveGroupRequest.MemberIdentity(member_id="", group_instance_id="j")
    answer = leader.wire.send(m.LeaveGroupRequest(group_id=leader.group, members=[identity]), 3)
    assert [(each.member_id, each.error_code) for each in answer.members] == [("", 0)]
    assert leader.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert follower.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("instance_id", ["", "a" * 300, "a/b", "ä"])
def test_any_instance_id_will_do(new_member: NewMember, instance_id: str) -> None:
    assert new_member(instance_id=instance_id).join().error_code == ErrorCode.NONE

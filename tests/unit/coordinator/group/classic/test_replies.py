"""Answers at their versions."""

from __future__ import annotations

import pytest

from coordinator.group.classic import replies
from coordinator.group.classic.events import LeaveGroup, LeavingMember
from protocol.errors import ErrorCode
from tests.unit.coordinator.group.classic.play import stable


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join_has_no_protocol_null_from_version_7(version: int) -> None:
    response = replies.join_refused(version, ErrorCode.UNKNOWN_MEMBER_ID, "a")
    response.encode(version)
    assert response.protocol_name == (None if version >= 7 else "")
    assert (response.generation_id, response.leader, response.member_id) == (-1, "", "a")


def test_only_the_leader_gets_the_members_with_metadata_of_the_chosen_protocol() -> None:
    play = stable(None, "a", "b", protocols="range:1,rr:2")
    group = play.existing()
    leader, follower = group.members.values()
    to_leader = replies.joined(group, leader)
    assert [each.metadata for each in to_leader.members] == [b"1", b"1"]
    assert [each.member_id for each in to_leader.members] == list(group.members)
    assert replies.joined(group, follower).members == []
    assert replies.joined(group, follower).leader == leader.member_id


@pytest.mark.parametrize("version", [0, 1, 2])
def test_leaving_before_version_3_puts_the_error_on_top(version: int) -> None:
    request = LeaveGroup(1, version, (LeavingMember("a"),))
    response = replies.left(request, [ErrorCode.UNKNOWN_MEMBER_ID])
    response.encode(version)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", [3, 4, 5])
def test_leaving_from_version_3_has_an_error_for_each(version: int) -> None:
    request = LeaveGroup(1, version, (LeavingMember("a"), LeavingMember("", "i")))
    response = replies.left(request, [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID])
    response.encode(version)
    assert response.error_code == ErrorCode.NONE
    assert [(each.member_id, each.group_instance_id, each.error_code) for each in response.members] == [
        ("a", None, ErrorCode.NONE),
        ("", "i", ErrorCode.UNKNOWN_MEMBER_ID),
    ]

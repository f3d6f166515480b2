"""Answers of classic groups, built for the version they are sent at.

Before version 7 a JoinGroup answer cannot say "no protocol" with null, so it is empty text there. LeaveGroup
has errors for each member from version 3; below, the one member's error is the answer's.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.group.classic.events import NO_GENERATION, LeaveGroup
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import Member
from protocol import messages as m
from protocol.errors import ErrorCode

NULL_PROTOCOL_FROM = 7
MEMBER_ERRORS_FROM = 3


def join_refused(version: int, error: ErrorCode, member_id: str) -> m.JoinGroupResponse:
    """A JoinGroup answer with an error: no generation, no protocol, no leader."""
    return m.JoinGroupResponse(
        error_code=error,
        generation_id=NO_GENERATION,
        protocol_type=None,
        protocol_name=None if version >= NULL_PROTOCOL_FROM else "",
        leader="",
        member_id=member_id,
    )


def joined(
    group: ClassicGroup,
    member: Member,
    *,
    leader: str | None = None,
    with_members: bool | None = None,
    skip_assignment: bool = False,
) -> m.JoinGroupResponse:
    """The generation as one member sees it; the leader gets every member's metadata for the protocol."""
    leads = group.leader_id == member.member_id if with_members is None else with_members
    return m.JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=(group.leader_id or "") if leader is None else leader,
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=member_list(group) if leads else [],
    )


def member_list(group: ClassicGroup) -> list[m.JoinGroupResponse.JoinGroupResponseMember]:
    """Every member with its metadata for the chosen protocol, in the order of joining."""
    return [
        m.JoinGroupResponse.JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def sync_refused(error: ErrorCode) -> m.SyncGroupResponse:
    """A SyncGroup answer with an error."""
    return m.SyncGroupResponse(error_code=error, protocol_type=None, protocol_name=None, assignment=b"")


def synced(group: ClassicGroup, member: Member) -> m.SyncGroupResponse:
    """A member's assignment; empty bytes when the leader gave it none."""
    return m.SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def left(request: LeaveGroup, errors: Sequence[ErrorCode]) -> m.LeaveGroupResponse:
    """One error for each member that the request names."""
    if request.version < MEMBER_ERRORS_FROM:
        return m.LeaveGroupResponse(error_code=errors[0] if errors else ErrorCode.NONE)
    return m.LeaveGroupResponse(
        members=[
            m.LeaveGroupResponse.MemberResponse(
                member_id=member.member_id, group_instance_id=member.instance_id, error_code=error
            )
            for member, error in zip(request.members, errors, strict=True)
        ]
    )

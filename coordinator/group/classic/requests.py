"""Decoded requests as events, with what differs between their versions evened out.

The token is the caller's; client id and host are those of the connection, as DescribeGroups shows them. A
SyncGroup that names a member twice gives it the last assignment, as Kafka does.
"""

from __future__ import annotations

from coordinator.group.classic.events import (
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    SyncGroup,
)
from protocol import messages as m

MEMBERS_FROM = 3
"""LeaveGroup version from which a request names several members."""


def join_event(
    token: int, version: int, request: m.JoinGroupRequest, client_id: str, client_host: str
) -> JoinGroup:
    """JoinGroup 0 to 9. The first of two protocols with one name counts."""
    protocols: dict[str, bytes] = {}
    for each in request.protocols:
        protocols.setdefault(each.name, bytes(each.metadata))
    return JoinGroup(
        token,
        version,
        request.member_id,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.protocol_type,
        tuple(protocols.items()),
        request.group_instance_id,
        request.reason,
        client_id,
        client_host,
    )


def sync_event(token: int, version: int, request: m.SyncGroupRequest) -> SyncGroup:
    """SyncGroup 0 to 5."""
    return SyncGroup(
        token,
        version,
        request.member_id,
        request.generation_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        {each.member_id: bytes(each.assignment) for each in request.assignments},
    )


def heartbeat_event(token: int, version: int, request: m.HeartbeatRequest) -> Heartbeat:
    """Heartbeat 0 to 4."""
    return Heartbeat(token, version, request.member_id, request.generation_id, request.group_instance_id)


def leave_event(token: int, version: int, request: m.LeaveGroupRequest) -> LeaveGroup:
    """LeaveGroup 0 to 5; below version 3 the one member stands in the request itself."""
    if version < MEMBERS_FROM:
        return LeaveGroup(token, version, (LeavingMember(request.member_id),))
    members = tuple(
        LeavingMember(each.member_id, each.group_instance_id, each.reason) for each in request.members
    )
    return LeaveGroup(token, version, members)

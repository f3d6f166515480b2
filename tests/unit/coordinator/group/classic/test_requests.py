"""Requests of every version become events."""

from __future__ import annotations

import pytest

from coordinator.group.classic.events import LeavingMember
from coordinator.group.classic.requests import heartbeat_event, join_event, leave_event, sync_event
from protocol import messages as m


def over_the_wire(request: m.Message, version: int) -> object:
    decoded, _ = type(request).decode(version, request.encode(version))
    return decoded


@pytest.mark.parametrize("version", range(10))
def test_join(version: int) -> None:
    request = m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000 if version >= 1 else -1,
        member_id="a",
        group_instance_id="i" if version >= 5 else None,
        protocol_type="consumer",
        protocols=[
            m.JoinGroupRequest.JoinGroupRequestProtocol(name="rr", metadata=b"1"),
            m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"2"),
        ],
        reason="why" if version >= 8 else None,
    )
    event = join_event(7, version, over_the_wire(request, version), "client", "/host")
    assert (event.token, event.version, event.member_id) == (7, version, "a")
    assert event.session_timeout_ms == 10_000
    assert event.rebalance_timeout_ms == (60_000 if version >= 1 else 10_000)
    assert event.protocols == (("rr", b"1"), ("range", b"2"))
    assert event.instance_id == ("i" if version >= 5 else None)
    assert event.reason == ("why" if version >= 8 else None)
    assert (event.protocol_type, event.client_id, event.client_host) == ("consumer", "client", "/host")


@pytest.mark.parametrize("version", range(6))
def test_sync(version: int) -> None:
    request = m.SyncGroupRequest(
        group_id="g",
        generation_id=3,
        member_id="a",
        group_instance_id="i" if version >= 3 else None,
        protocol_type="consumer" if version >= 5 else None,
        protocol_name="range" if version >= 5 else None,
        assignments=[
            m.SyncGroupRequest.SyncGroupRequestAssignment(member_id="a", assignment=b"1"),
            m.SyncGroupRequest.SyncGroupRequestAssignment(member_id="b", assignment=b"2"),
        ],
    )
    event = sync_event(7, version, over_the_wire(request, version))
    assert (event.token, event.version, event.member_id, event.generation) == (7, version, "a", 3)
    assert event.assignments == {"a": b"1", "b": b"2"}
    assert event.instance_id == ("i" if version >= 3 else None)
    assert event.protocol_type == ("consumer" if version >= 5 else None)
    assert event.protocol_name == ("range" if version >= 5 else None)


@pytest.mark.parametrize("version", range(5))
def test_heartbeat(version: int) -> None:
    request = m.HeartbeatRequest(
        group_id="g", generation_id=3, member_id="a", group_instance_id="i" if version >= 3 else None
    )
    event = heartbeat_event(7, version, over_the_wire(request, version))
    assert (event.token, event.version, event.member_id, event.generation) == (7, version, "a", 3)
    assert event.instance_id == ("i" if version >= 3 else None)


@pytest.mark.parametrize("version", range(3))
def test_leave_of_one_member(version: int) -> None:
    request = m.LeaveGroupRequest(group_id="g", member_id="a")
    event = leave_event(7, version, over_the_wire(request, version))
    assert (event.token, event.version, event.members) == (7, version, (LeavingMember("a"),))


@pytest.mark.parametrize("version", [3, 4, 5])
def test_leave_of_several_members(version: int) -> None:
    request = m.LeaveGroupRequest(
        group_id="g",
        members=[
            m.LeaveGroupRequest.MemberIdentity(member_id="a", reason="why" if version >= 5 else None),
            m.LeaveGroupRequest.MemberIdentity(member_id="", group_instance_id="i"),
        ],
    )
    event = leave_event(7, version, over_the_wire(request, version))
    assert event.members == (
        LeavingMember("a", None, "why" if version >= 5 else None),
        LeavingMember("", "i"),
    )

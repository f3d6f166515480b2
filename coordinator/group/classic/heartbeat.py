"""Heartbeat, versions 0 to 4: the session begins again, and the member learns whether a rebalance is on.

The most frequent request of all, so the way of a good one is short: no timer is set (member.py tells why).
"""

from __future__ import annotations

from coordinator.group.classic.effects import Outcome
from coordinator.group.classic.events import Heartbeat
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.states import GroupState
from protocol import messages as m
from protocol.errors import ErrorCode


def heartbeat(group: ClassicGroup, event: Heartbeat, now_ms: int, out: Outcome) -> None:
    """Answer a heartbeat."""
    out.reply(event.token, m.HeartbeatResponse(error_code=beat(group, event, now_ms, out)))


def beat(group: ClassicGroup, event: Heartbeat, now_ms: int, out: Outcome) -> ErrorCode:
    """What a heartbeat is told; it has no reply in `out`."""
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.check_member(event.member_id, event.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    group.renew_session(group.members[event.member_id], now_ms, out)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE

"""LeaveGroup, versions 0 to 5: any number of members, one rebalance.

An administrator removes static members by instance id alone (version 3 and later). An id that was handed out
and not used can leave too. When the last member goes, the answer waits until the Empty group is written.
"""

from __future__ import annotations

from coordinator.group.classic import replies
from coordinator.group.classic.effects import Outcome, session_timer
from coordinator.group.classic.events import NO_MEMBER_ID, LeaveGroup, LeavingMember
from coordinator.group.classic.group import ClassicGroup, EmptyWrite
from coordinator.group.classic.member import Waiter
from coordinator.group.classic.rebalance import client_reason, drop, rebalance
from coordinator.group.classic.states import GroupState
from protocol import messages as m
from protocol.errors import ErrorCode


def leave(group: ClassicGroup, event: LeaveGroup, now_ms: int, out: Outcome) -> None:
    """Remove the members that the request names, and answer for each of them."""
    if group.state is GroupState.DEAD:
        dead = m.LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        out.reply(event.token, dead)
        return
    errors = [_remove(group, leaving, out) for leaving in event.members]
    gone = [each for each, error in zip(event.members, errors, strict=True) if error is ErrorCode.NONE]
    if gone and group.state is not GroupState.EMPTY:
        names = ", ".join(each.member_id or f"instance {each.instance_id}" for each in gone)
        rebalance(group, f"{names} left; {client_reason(gone[0].reason)}", now_ms, out)
    response = replies.left(event, errors)
    write = group.writes.get(out.write_id)
    if isinstance(write, EmptyWrite):
        write.held.append((Waiter(event.token, event.version), response))
    else:
        out.reply(event.token, response)


def _remove(group: ClassicGroup, leaving: LeavingMember, out: Outcome) -> ErrorCode:
    member_id = leaving.member_id
    if member_id in group.pending_ids:
        del group.pending_ids[member_id]
        out.cancel_timer(session_timer(member_id))
        return ErrorCode.NONE
    if member_id == NO_MEMBER_ID and leaving.instance_id is not None:
        member_id = group.static_ids.get(leaving.instance_id, NO_MEMBER_ID)
    error = group.check_member(member_id, leaving.instance_id)
    if error is ErrorCode.NONE:
        drop(group, group.members[member_id], ErrorCode.UNKNOWN_MEMBER_ID, out)
    return error


def written(write: EmptyWrite, out: Outcome) -> None:
    """The Empty group is committed."""
    for waiter, response in write.held:
        out.reply(waiter.token, response)


def failed(write: EmptyWrite, error: ErrorCode, out: Outcome) -> None:
    """It was not written.

    The members are gone here; after a failover they come back until their sessions end.
    """
    for waiter, _ in write.held:
        out.reply(waiter.token, m.LeaveGroupResponse(error_code=error))

"""The one door of a classic group: an event and the time in, what to do out.

`now_ms` is milliseconds since the epoch, of a clock that does not jump: sessions are measured with it. The
state changes at once, so the next event may come before this one's records are committed; which answers wait
for them is decided here, by write id. The caller keeps a group for each id, creates one where
`handle_without_group` says so, and forgets one that is Dead or vacant.
"""

from __future__ import annotations

from coordinator.group.classic import expiry, leave, rebalance, replies, static_members, sync
from coordinator.group.classic.effects import JOIN_TIMER, SYNC_TIMER, Outcome, session_timer
from coordinator.group.classic.events import (
    NO_MEMBER_ID,
    Deleted,
    Downgraded,
    Event,
    GroupSettings,
    Heartbeat,
    InitialDelayOver,
    JoinGroup,
    LeaveGroup,
    Loaded,
    PendingMemberExpired,
    RebalanceDeadline,
    RecordsCommitted,
    RecordsFailed,
    Request,
    SessionExpired,
    SyncDeadline,
    SyncGroup,
    Unloaded,
    Upgraded,
)
from coordinator.group.classic.group import AssignmentWrite, ClassicGroup, EmptyWrite, StaticMemberWrite
from coordinator.group.classic.heartbeat import heartbeat
from coordinator.group.classic.join import join, session_in_bounds
from coordinator.group.classic.states import GroupState
from coordinator.result import append_error
from protocol import messages as m
from protocol.errors import ErrorCode


def handle(group: ClassicGroup, event: Event, now_ms: int) -> Outcome:
    """Let something happen to a group. Never raises for what a client sent."""
    out = Outcome()
    match event:
        case Heartbeat():
            heartbeat(group, event, now_ms, out)
        case JoinGroup():
            join(group, event, now_ms, out)
        case SyncGroup():
            sync.sync(group, event, now_ms, out)
        case LeaveGroup():
            leave.leave(group, event, now_ms, out)
        case RecordsCommitted(write_id):
            _committed(group, write_id, now_ms, out)
        case RecordsFailed(write_id, error):
            _failed(group, write_id, error, now_ms, out)
        case _ if group.state is GroupState.DEAD:
            pass  # a timer that was under way
        case SessionExpired(member_id):
            expiry.session_expired(group, member_id, now_ms, out)
        case PendingMemberExpired(member_id):
            expiry.pending_member_expired(group, member_id, now_ms, out)
        case InitialDelayOver():
            rebalance.initial_delay_over(group, now_ms, out)
        case RebalanceDeadline():
            rebalance.deadline_reached(group, now_ms, out)
        case SyncDeadline(generation):
            sync.deadline_reached(group, generation, now_ms, out)
        case Loaded():
            _loaded(group, now_ms, out)
        case Unloaded():
            _unloaded(
                group, ErrorCode.NOT_COORDINATOR, "another broker has become the coordinator", now_ms, out
            )
        case Upgraded():
            _unloaded(group, ErrorCode.REBALANCE_IN_PROGRESS, "it is a consumer group now", now_ms, out)
        case Downgraded(reason):
            _downgraded(group, reason, now_ms, out)
        case Deleted():
            _deleted(group, now_ms, out)
    return out


def handle_without_group(event: Request, settings: GroupSettings) -> Outcome | None:
    """Answer a request to a group that does not exist; None: create the group, and handle the event there.

    Only a JoinGroup without a member id creates one, and not if its session timeout is out of bounds.
    """
    out = Outcome()
    match event:
        case JoinGroup():
            if not session_in_bounds(event, settings):
                error = ErrorCode.INVALID_SESSION_TIMEOUT
            elif event.member_id != NO_MEMBER_ID:
                error = ErrorCode.UNKNOWN_MEMBER_ID
            else:
                return None
            out.reply(event.token, replies.join_refused(event.version, error, event.member_id))
        case SyncGroup():
            out.reply(event.token, replies.sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        case Heartbeat():
            out.reply(event.token, m.HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        case LeaveGroup():
            errors = [ErrorCode.UNKNOWN_MEMBER_ID] * len(event.members)
            out.reply(event.token, replies.left(event, errors))
    return out


def _committed(group: ClassicGroup, write_id: int, now_ms: int, out: Outcome) -> None:
    match group.writes.pop(write_id, None):
        case AssignmentWrite() as write:
            sync.written(group, write, now_ms, out)
        case StaticMemberWrite() as write:
            static_members.written(group, write, now_ms, out)
        case EmptyWrite() as write:
            leave.written(write, out)


def _failed(group: ClassicGroup, write_id: int, log_error: ErrorCode, now_ms: int, out: Outcome) -> None:
    error = append_error(log_error)
    match group.writes.pop(write_id, None):
        case AssignmentWrite() as write:
            sync.failed(group, write, error, now_ms, out)
        case StaticMemberWrite() as write:
            static_members.failed(group, write, error, now_ms, out)
        case EmptyWrite() as write:
            leave.failed(write, error, out)


def _loaded(group: ClassicGroup, now_ms: int, out: Outcome) -> None:
    for member in group.members.values():
        group.renew_session(member, now_ms, out)
    if group.state is not GroupState.STABLE:
        return
    if group.leader_id is None:
        rebalance.prepare(group, "it was loaded without a leader", now_ms, out)
    elif len(group.members) > group.settings.max_size:
        rebalance.prepare(group, "it was loaded with more members than group.max.size", now_ms, out)


def _downgraded(group: ClassicGroup, reason: str | None, now_ms: int, out: Outcome) -> None:
    for member in group.members.values():
        group.renew_session(member, now_ms, out)
    if reason is not None and group.state is GroupState.STABLE:
        rebalance.prepare(group, reason, now_ms, out)


def _unloaded(group: ClassicGroup, error: ErrorCode, cause: str, now_ms: int, out: Outcome) -> None:
    for member in group.members.values():
        waiter = group.take_join(member)
        if waiter is not None:
            refused = replies.join_refused(waiter.version, error, member.member_id)
            out.reply(waiter.token, refused)
        rebalance.refuse_sync(member, error, out)
    for write in group.writes.values():
        if isinstance(write, EmptyWrite):
            leave.failed(write, error, out)
    _die(group, now_ms, out, cause)


def _deleted(group: ClassicGroup, now_ms: int, out: Outcome) -> None:
    assert group.state is GroupState.EMPTY, "only an Empty group is deleted"
    for write in group.writes.values():
        if isinstance(write, EmptyWrite):
            leave.written(write, out)
    _die(group, now_ms, out, "it was deleted")


def _die(group: ClassicGroup, now_ms: int, out: Outcome, cause: str) -> None:
    out.cancel_timer(JOIN_TIMER)
    out.cancel_timer(SYNC_TIMER)
    for member in group.members.values():
        group.forget_session_timer(member, out)
    for member_id in group.pending_ids:
        out.cancel_timer(session_timer(member_id))
    group.pending_ids.clear()
    group.writes.clear()
    group.enter(GroupState.DEAD, now_ms, cause)

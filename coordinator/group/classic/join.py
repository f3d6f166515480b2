"""JoinGroup, versions 0 to 9.

Order of checks, as clients depend on it: session bounds, dead group, room (`group.max.size`, and memory),
protocols, then the way of the member: a new one, one that uses the id it was given (KIP-394, version 4 and
later), one that is known. A known member that says nothing new gets the running generation again, for its
first answer may have been lost; the leader of a Stable group always starts a rebalance, because it may have
seen what metadata does not show.
"""

from __future__ import annotations

from coordinator.group.classic import replies, static_members
from coordinator.group.classic.effects import Outcome, session_timer
from coordinator.group.classic.events import NO_MEMBER_ID, GroupSettings, JoinGroup, PendingMemberExpired
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import Member, Waiter
from coordinator.group.classic.rebalance import client_reason, drop, rebalance, try_complete
from coordinator.group.classic.states import GroupState
from coordinator.group.room import Claim, pending_size, protocols_size
from protocol.errors import ErrorCode

MEMBER_ID_REQUIRED_FROM = 4


def session_in_bounds(event: JoinGroup, settings: GroupSettings) -> bool:
    """Whether a session timeout lies between `group.min.` and `group.max.session.timeout.ms`."""
    return settings.min_session_timeout_ms <= event.session_timeout_ms <= settings.max_session_timeout_ms


def join(group: ClassicGroup, event: JoinGroup, now_ms: int, out: Outcome) -> None:
    """Answer a JoinGroup, or park it until the join phase is over."""
    if not session_in_bounds(event, group.settings):
        _refuse(event, ErrorCode.INVALID_SESSION_TIMEOUT, event.member_id, out)
    elif group.state is GroupState.DEAD:
        _refuse(event, ErrorCode.COORDINATOR_NOT_AVAILABLE, event.member_id, out)
    elif not _has_room(group, event):
        _turn_away(group, event, now_ms, out)
    elif not group.settings.room.has(_growth(group, event)):
        _refuse(event, ErrorCode.COORDINATOR_NOT_AVAILABLE, event.member_id, out)
    elif not group.supports(event.protocol_type, [name for name, _ in event.protocols]):
        _refuse(event, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, event.member_id, out)
    elif event.member_id == NO_MEMBER_ID:
        _join_without_id(group, event, now_ms, out)
    elif event.member_id in group.pending_ids and event.instance_id is None:
        _admit(group, event, event.member_id, now_ms, out)
    else:
        _rejoin(group, event, now_ms, out)


def _refuse(event: JoinGroup, error: ErrorCode, member_id: str, out: Outcome) -> None:
    out.reply(event.token, replies.join_refused(event.version, error, member_id))


def _known_id(group: ClassicGroup, event: JoinGroup) -> str:
    """The id that the joining one has or replaces: a static member that restarts takes no room of its own."""
    if event.member_id == NO_MEMBER_ID and event.instance_id is not None:
        return group.static_ids.get(event.instance_id, NO_MEMBER_ID)
    return event.member_id


def _has_room(group: ClassicGroup, event: JoinGroup) -> bool:
    """During the join phase those that are parked count, so a group above its limit shrinks to it."""
    member = group.members.get(_known_id(group, event))
    if group.state is GroupState.PREPARING_REBALANCE:
        parked = member is not None and member.joining is not None
        return parked or group.awaiting_join < group.settings.max_size
    if group.state is GroupState.EMPTY:
        return True
    return member is not None or len(group.members) < group.settings.max_size


def _growth(group: ClassicGroup, event: JoinGroup) -> int:
    """How much more memory the group takes with what the member brings, about."""
    member = group.members.get(_known_id(group, event))
    if member is not None and member.protocols == event.protocols:
        return 0
    size = protocols_size(event.protocols)
    return size + pending_size(event.client_id) if member is None else size - protocols_size(member.protocols)


def _turn_away(group: ClassicGroup, event: JoinGroup, now_ms: int, out: Outcome) -> None:
    member = group.members.get(_known_id(group, event))
    if member is not None:
        drop(group, member, ErrorCode.GROUP_MAX_SIZE_REACHED, out)
    elif event.member_id in group.pending_ids:
        del group.pending_ids[event.member_id]
        out.cancel_timer(session_timer(event.member_id))
    _refuse(event, ErrorCode.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID, out)
    try_complete(group, now_ms, out)


def _join_without_id(group: ClassicGroup, event: JoinGroup, now_ms: int, out: Outcome) -> None:
    member_id = group.new_member_id(event.client_id, event.instance_id)
    if event.instance_id is not None and event.instance_id in group.static_ids:
        static_members.restart(group, event, member_id, now_ms, out)
    elif event.instance_id is not None or event.version < MEMBER_ID_REQUIRED_FROM:
        _admit(group, event, member_id, now_ms, out)
    else:
        group.pending_ids[member_id] = Claim(group.settings.room, pending_size(member_id))
        out.set_timer(session_timer(member_id), event.session_timeout_ms, PendingMemberExpired(member_id))
        _refuse(event, ErrorCode.MEMBER_ID_REQUIRED, member_id, out)


def _admit(group: ClassicGroup, event: JoinGroup, member_id: str, now_ms: int, out: Outcome) -> None:
    """A new member: its JoinGroup is parked, under the limit for those that cannot send heartbeats yet."""
    member = Member(
        member_id,
        event.instance_id,
        event.client_id,
        event.client_host,
        event.rebalance_timeout_ms,
        event.session_timeout_ms,
        event.protocols,
        is_new=True,
    )
    if not group.members:
        group.protocol_type = event.protocol_type
    group.joined_meanwhile = group.in_initial_delay
    group.add(member)
    group.park_join(member, Waiter(event.token, event.version))
    group.renew_session(member, now_ms, out, group.settings.new_member_join_timeout_ms)
    rebalance(group, f"new member {member_id}; {client_reason(event.reason)}", now_ms, out)


def _rejoin(group: ClassicGroup, event: JoinGroup, now_ms: int, out: Outcome) -> None:
    error = group.check_member(event.member_id, event.instance_id)
    if error is not ErrorCode.NONE:
        _refuse(event, error, event.member_id, out)
        return
    member = group.members[event.member_id]
    changed = member.protocols != event.protocols
    if group.state is GroupState.PREPARING_REBALANCE:
        reason = "joins the rebalance"
    elif changed:
        reason = "has changed its metadata"
    elif group.state is GroupState.STABLE and group.leader_id == member.member_id:
        reason = "leads and joins again"
    else:
        group.renew_session(member, now_ms, out)
        out.reply(event.token, replies.joined(group, member))
        return
    group.update(member, event.protocols, event.rebalance_timeout_ms, event.session_timeout_ms)
    # A second JoinGroup comes over a new connection: the first one's answer has no reader any more.
    stale = group.take_join(member)
    if stale is not None:
        out.reply(
            stale.token,
            replies.join_refused(stale.version, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id),
        )
    group.park_join(member, Waiter(event.token, event.version))
    rebalance(group, f"member {member.member_id} {reason}; {client_reason(event.reason)}", now_ms, out)

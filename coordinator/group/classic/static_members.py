"""Static members that come back (KIP-345): same instance id, a new member id, and the old one is fenced.

In a Stable group whose vote would not change, that causes no rebalance: the new id is written and the
running generation answered. From version 9 (KIP-814) a leader that restarts is told that it leads, gets the
members, and is asked to skip the assignment. Before, it is shown the old leader's id and no members, so that
it acts as a follower and fetches its old assignment; it would otherwise compute one for a generation that
has one already.
"""

from __future__ import annotations

from coordinator.group.classic import replies
from coordinator.group.classic.effects import Outcome
from coordinator.group.classic.events import NO_MEMBER_ID, JoinGroup
from coordinator.group.classic.group import ClassicGroup, StaticMemberWrite
from coordinator.group.classic.member import Member, Waiter
from coordinator.group.classic.rebalance import client_reason, prepare, rebalance, refuse_sync
from coordinator.group.classic.snapshot import group_record
from coordinator.group.classic.states import GroupState
from protocol.errors import ErrorCode

SKIP_ASSIGNMENT_FROM = 9


def restart(group: ClassicGroup, event: JoinGroup, member_id: str, now_ms: int, out: Outcome) -> None:
    """Take the place of the member that holds the instance id, and answer or park the JoinGroup."""
    assert event.instance_id is not None, "only static members restart"
    leader_before = group.leader_id
    old = group.members[group.static_ids[event.instance_id]]
    _fence(group, old, out)
    new = Member(
        member_id,
        old.instance_id,
        event.client_id,
        event.client_host,
        event.rebalance_timeout_ms,
        event.session_timeout_ms,
        event.protocols,
        old.assignment,
    )
    group.replace(old, new)
    group.park_join(new, Waiter(event.token, event.version))
    group.renew_session(new, now_ms, out)
    reason = f"static member {event.instance_id} comes back as {member_id}; {client_reason(event.reason)}"
    if group.state is GroupState.STABLE and group.choose_protocol() == group.protocol_name:
        out.note(f"{reason}; no rebalance")
        out.records.append(group_record(group))
        group.expect_write(StaticMemberWrite(event.token, member_id, old, leader_before), out)
    elif group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may know the old id already: its assignment would miss the new one.
        prepare(group, reason, now_ms, out)
    else:
        rebalance(group, reason, now_ms, out)


def _fence(group: ClassicGroup, old: Member, out: Outcome) -> None:
    waiter = group.take_join(old)
    if waiter is not None:
        out.reply(
            waiter.token,
            replies.join_refused(waiter.version, ErrorCode.FENCED_INSTANCE_ID, old.member_id),
        )
    refuse_sync(old, ErrorCode.FENCED_INSTANCE_ID, out)
    group.forget_session_timer(old, out)


def _parked(group: ClassicGroup, write: StaticMemberWrite) -> Member | None:
    """The member whose JoinGroup waits for this write.

    None once it has left or a rebalance has taken it over.
    """
    member = group.members.get(write.member_id)
    if (
        group.state is not GroupState.STABLE
        or member is None
        or member.joining is None
        or member.joining.token != write.token
    ):
        return None
    return member


def written(group: ClassicGroup, write: StaticMemberWrite, now_ms: int, out: Outcome) -> None:
    """The new id is committed: answer with the running generation."""
    member = _parked(group, write)
    if member is None:
        return
    waiter = group.take_join(member)
    assert waiter is not None, "parked"
    group.renew_session(member, now_ms, out)
    if waiter.version >= SKIP_ASSIGNMENT_FROM:
        leads = group.leader_id == member.member_id
        response = replies.joined(group, member, skip_assignment=leads)
    else:
        response = replies.joined(group, member, leader=write.leader_before, with_members=False)
    out.reply(waiter.token, response)


def failed(
    group: ClassicGroup, write: StaticMemberWrite, error: ErrorCode, now_ms: int, out: Outcome
) -> None:
    """The new id was not written: the old one holds again.

    If it has been replaced meanwhile, and that is not written either, the one before it has to come back.
    """
    for later in group.writes.values():
        if isinstance(later, StaticMemberWrite) and later.replaced.member_id == write.member_id:
            later.replaced, later.leader_before = write.replaced, write.leader_before
    member = _parked(group, write)
    if member is None:
        return
    waiter = group.take_join(member)
    assert waiter is not None, "parked"
    group.forget_session_timer(member, out)
    group.replace(member, write.replaced)
    group.renew_session(write.replaced, now_ms, out)
    out.reply(waiter.token, replies.join_refused(waiter.version, error, NO_MEMBER_ID))
    out.note(f"{write.replaced.member_id} holds again, {error.name}")

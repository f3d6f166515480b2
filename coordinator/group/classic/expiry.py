"""Sessions that end: of members, and of ids that were handed out and never used (KIP-394)."""

from __future__ import annotations

from coordinator.group.classic.effects import Outcome
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import NO_TIMER
from coordinator.group.classic.rebalance import drop, rebalance, try_complete
from protocol.errors import ErrorCode


def session_expired(group: ClassicGroup, member_id: str, now_ms: int, out: Outcome) -> None:
    """Remove a member if its session really is over.

    It is not while a request of it is parked (the answer begins a new session), nor when the deadline has
    moved since the timer was set: then the timer is set again.
    """
    member = group.members.get(member_id)
    if member is None:
        return
    member.timer_at_ms = NO_TIMER
    if not member.may_expire:
        return
    limit_ms = group.settings.new_member_join_timeout_ms if member.is_new else member.session_timeout_ms
    left_ms = min(member.session_deadline_ms - now_ms, limit_ms)  # more, only if the clock was set back
    if left_ms > 0:
        group.renew_session(member, now_ms, out, left_ms)
        return
    drop(group, member, ErrorCode.UNKNOWN_MEMBER_ID, out)
    rebalance(group, f"the session of {member_id} is over", now_ms, out)


def pending_member_expired(group: ClassicGroup, member_id: str, now_ms: int, out: Outcome) -> None:
    """Forget a member id that nobody joined with; the join phase need not wait for it any more."""
    if member_id in group.pending_ids:
        del group.pending_ids[member_id]
        out.note(f"member id {member_id} was not used")
        try_complete(group, now_ms, out)

"""The join phase: how it begins, when it is over, and what a generation starts with.

A phase ends when each member has joined and no handed out id is unused, or at the group's rebalance timeout.
Then dynamic members that did not join are gone; static ones (KIP-345) stay with what they said last. An
empty group waits `group.initial.rebalance.delay.ms` first, again whenever somebody joined meanwhile, but
never longer than its rebalance timeout (KIP-134). The generation rises here and nowhere else.
"""

from __future__ import annotations

from coordinator.group.classic import replies
from coordinator.group.classic.effects import JOIN_TIMER, SYNC_TIMER, Outcome
from coordinator.group.classic.events import InitialDelayOver, RebalanceDeadline, SyncDeadline
from coordinator.group.classic.group import ClassicGroup, EmptyWrite
from coordinator.group.classic.member import Member
from coordinator.group.classic.snapshot import group_record
from coordinator.group.classic.states import GroupState
from protocol.errors import ErrorCode

REASON_MAX = 255
"""Characters of a client's reason that are kept (KIP-800)."""


def client_reason(reason: str | None) -> str:
    """A reason that a client gave, cut for the log."""
    return f"client reason: {(reason or 'not provided')[:REASON_MAX]}"


def rebalance(group: ClassicGroup, reason: str, now_ms: int, out: Outcome) -> None:
    """Begin a rebalance, or, when one is going on, see whether its join phase is over."""
    if group.can_rebalance:
        prepare(group, reason, now_ms, out)
    else:
        try_complete(group, now_ms, out)


def prepare(group: ClassicGroup, reason: str, now_ms: int, out: Outcome) -> None:
    """Begin the join phase. Syncs that wait for an assignment have to join again."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms, out)
    group.unsynced.clear()
    out.cancel_timer(SYNC_TIMER)
    first = group.state is GroupState.EMPTY
    group.enter(GroupState.PREPARING_REBALANCE, now_ms, reason)
    out.note(f"prepares to rebalance from generation {group.generation}: {reason}")
    if first and group.settings.initial_rebalance_delay_ms > 0:
        _begin_initial_delay(group, out)
    elif first or group.everybody_joined:
        complete(group, now_ms, out)
    else:
        out.set_timer(JOIN_TIMER, group.rebalance_timeout_ms, RebalanceDeadline())


def _begin_initial_delay(group: ClassicGroup, out: Outcome) -> None:
    limit_ms = group.rebalance_timeout_ms
    group.joined_meanwhile = False
    group.initial_delay_ms = min(group.settings.initial_rebalance_delay_ms, limit_ms)
    group.initial_remaining_ms = limit_ms - group.initial_delay_ms
    out.set_timer(JOIN_TIMER, group.initial_delay_ms, InitialDelayOver())


def initial_delay_over(group: ClassicGroup, now_ms: int, out: Outcome) -> None:
    """Wait again when somebody joined meanwhile and time remains; else the first generation begins."""
    if not group.in_initial_delay:
        return
    if group.joined_meanwhile and group.initial_remaining_ms > 0:
        group.joined_meanwhile = False
        group.initial_delay_ms = min(group.settings.initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.initial_remaining_ms -= group.initial_delay_ms
        out.set_timer(JOIN_TIMER, group.initial_delay_ms, InitialDelayOver())
    else:
        complete(group, now_ms, out)


def deadline_reached(group: ClassicGroup, now_ms: int, out: Outcome) -> None:
    """The join phase has lasted a rebalance timeout: go on without those that are missing."""
    if group.state is GroupState.PREPARING_REBALANCE:
        complete(group, now_ms, out)


def try_complete(group: ClassicGroup, now_ms: int, out: Outcome) -> None:
    """End the join phase if everybody has joined. The initial delay is cut short only when nobody is left."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.everybody_joined
        and not (group.in_initial_delay and group.members)
    ):
        complete(group, now_ms, out)


def complete(group: ClassicGroup, now_ms: int, out: Outcome) -> None:
    """End the join phase with those that joined: the next generation, or an Empty group."""
    out.cancel_timer(JOIN_TIMER)
    for member in [each for each in group.members.values() if each.joining is None and not each.is_static]:
        out.note(f"goes on without {member.member_id}, which did not join")
        drop(group, member, ErrorCode.UNKNOWN_MEMBER_ID, out)
    if group.members and not group.elect_joined_leader():
        out.note("has static members only, and none has joined: waiting")
        out.set_timer(JOIN_TIMER, group.rebalance_timeout_ms, RebalanceDeadline())
        return
    group.generation += 1
    if group.members:
        _begin_generation(group, now_ms, out)
    else:
        _become_empty(group, now_ms, out)


def _begin_generation(group: ClassicGroup, now_ms: int, out: Outcome) -> None:
    group.protocol_name = group.choose_protocol()
    group.enter(GroupState.COMPLETING_REBALANCE, now_ms, "the join phase is over")
    for member in group.members.values():
        waiter = group.take_join(member)
        if waiter is None:
            continue  # a static member that missed the phase: its session goes on running
        member.is_new = False
        group.unsynced[member.member_id] = None
        group.renew_session(member, now_ms, out)
        out.reply(waiter.token, replies.joined(group, member))
    out.set_timer(SYNC_TIMER, group.rebalance_timeout_ms, SyncDeadline(group.generation))
    out.note(f"generation {group.generation}: {len(group.members)} members, leader {group.leader_id}")


def _become_empty(group: ClassicGroup, now_ms: int, out: Outcome) -> None:
    group.protocol_name = None
    group.leader_id = None
    group.enter(GroupState.EMPTY, now_ms, "nobody is left")
    out.records.append(group_record(group))
    group.expect_write(EmptyWrite(), out)
    out.note(f"is empty at generation {group.generation}")


def drop(group: ClassicGroup, member: Member, error: ErrorCode, out: Outcome) -> None:
    """Remove a member; requests of it that are parked get the error, and no id to go on with."""
    waiter = group.take_join(member)
    if waiter is not None:
        out.reply(waiter.token, replies.join_refused(waiter.version, error, ""))
    refuse_sync(member, error, out)
    group.forget_session_timer(member, out)
    group.remove(member)


def refuse_sync(member: Member, error: ErrorCode, out: Outcome) -> bool:
    """Answer a member's parked SyncGroup with an error; false if there is none."""
    waiter, member.syncing = member.syncing, None
    if waiter is None:
        return False
    out.reply(waiter.token, replies.sync_refused(error))
    return True


def refuse_syncs(group: ClassicGroup, error: ErrorCode, now_ms: int, out: Outcome) -> None:
    """Take all assignments back and answer every parked SyncGroup with an error.

    Their sessions begin again.
    """
    for member in group.members.values():
        member.assignment = b""
        if refuse_sync(member, error, out):
            group.renew_session(member, now_ms, out)

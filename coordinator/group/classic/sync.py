"""SyncGroup, versions 0 to 5, and the pending syncs that have a deadline.

Followers wait for the leader; the leader's request brings the assignment, which is written before anybody
learns of it. A generation that has moved on meanwhile ignores the write. Who never syncs, though it joined,
is removed one rebalance timeout after the join phase, also when the group has long been Stable.
"""

from __future__ import annotations

from coordinator.group.classic import replies
from coordinator.group.classic.effects import SYNC_TIMER, Outcome
from coordinator.group.classic.events import SyncGroup
from coordinator.group.classic.group import AssignmentWrite, ClassicGroup
from coordinator.group.classic.member import Member, Waiter
from coordinator.group.classic.rebalance import drop, prepare, refuse_sync, refuse_syncs
from coordinator.group.classic.snapshot import group_record
from coordinator.group.classic.states import GroupState
from protocol.errors import ErrorCode


def sync(group: ClassicGroup, event: SyncGroup, now_ms: int, out: Outcome) -> None:
    """Answer a SyncGroup, or park it until the assignment is committed."""
    error = _check(group, event)
    if error is not ErrorCode.NONE:
        out.reply(event.token, replies.sync_refused(error))
        return
    member = group.members[event.member_id]
    group.renew_session(member, now_ms, out)
    if group.state is GroupState.PREPARING_REBALANCE:
        out.reply(event.token, replies.sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        return
    leads = group.state is GroupState.COMPLETING_REBALANCE and group.leader_id == member.member_id
    if leads and not group.settings.room.has(sum(map(len, (event.assignments or {}).values()))):
        out.reply(event.token, replies.sync_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return
    if member.member_id in group.unsynced:
        del group.unsynced[member.member_id]
        if not group.unsynced:
            out.cancel_timer(SYNC_TIMER)
    if group.state is GroupState.STABLE:
        out.reply(event.token, replies.synced(group, member))
        return
    refuse_sync(member, ErrorCode.REBALANCE_IN_PROGRESS, out)  # of an older connection, which nobody reads
    member.syncing = Waiter(event.token, event.version)
    if group.leader_id == member.member_id:
        _write_assignment(group, event.assignments or {}, now_ms, out)


def _check(group: ClassicGroup, event: SyncGroup) -> ErrorCode:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    error = group.check_member(event.member_id, event.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for named, chosen in (
        (event.protocol_type, group.protocol_type),
        (event.protocol_name, group.protocol_name),
    ):
        if named is not None and named != chosen:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _write_assignment(group: ClassicGroup, assignments: dict[str, bytes], now_ms: int, out: Outcome) -> None:
    for write in group.writes.values():
        if isinstance(write, AssignmentWrite) and write.generation == group.generation:
            return  # a repeated request: the first one's assignment is on its way
    given = {member_id: assignments.get(member_id, b"") for member_id in group.members}
    out.records.append(group_record(group, given, now_ms))
    group.expect_write(AssignmentWrite(group.generation, given, now_ms), out)


def _is_current(group: ClassicGroup, write: AssignmentWrite) -> bool:
    return group.state is GroupState.COMPLETING_REBALANCE and group.generation == write.generation


def written(group: ClassicGroup, write: AssignmentWrite, now_ms: int, out: Outcome) -> None:
    """The assignment is committed: the group is Stable, and whoever waits gets its part."""
    if not _is_current(group, write):
        return
    group.enter(GroupState.STABLE, write.since_ms, "the assignment is committed")
    for member in group.members.values():
        member.assignment = write.assignments.get(member.member_id, b"")
        group.claim_room(member)
        waiter, member.syncing = member.syncing, None
        if waiter is not None:
            group.renew_session(member, now_ms, out)
            out.reply(waiter.token, replies.synced(group, member))


def failed(group: ClassicGroup, write: AssignmentWrite, error: ErrorCode, now_ms: int, out: Outcome) -> None:
    """The assignment was not written: nobody gets any, and the group rebalances."""
    if _is_current(group, write):
        refuse_syncs(group, error, now_ms, out)
        prepare(group, f"the assignment was not written: {error.name}", now_ms, out)


def deadline_reached(group: ClassicGroup, generation: int, now_ms: int, out: Outcome) -> None:
    """Remove those that joined this generation and have not synced."""
    settled = group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
    if not settled or group.generation != generation or not group.unsynced:
        return
    late: list[Member] = [group.members[member_id] for member_id in group.unsynced]
    for member in late:
        drop(group, member, ErrorCode.UNKNOWN_MEMBER_ID, out)
    names = ", ".join(member.member_id for member in late)
    prepare(group, f"no SyncGroup came from {names}", now_ms, out)

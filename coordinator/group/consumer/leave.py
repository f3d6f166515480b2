"""Members that go: by their own word, for a while (static ones), or because they were not heard of.

The group epoch rises with every member that goes. Its last member of the new protocol leaves a group of
classic members behind, which then goes on as a classic group where the migration policy says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from coordinator.group.consumer.assign import update_epoch
from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.checks import check_instance
from coordinator.group.consumer.downgrade import Downgrades
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.errors import no_group, no_member
from coordinator.group.consumer.member import STATIC_LEAVE_EPOCH, Member
from coordinator.group.consumer.subscriptions import subscribed_regexes
from coordinator.group.modern.records import TargetEpoch
from coordinator.result import Result
from protocol import messages as m


def leave(
    env: Environment, downgrades: Downgrades, request: m.ConsumerGroupHeartbeatRequest
) -> Result[m.ConsumerGroupHeartbeatResponse]:
    """A heartbeat with epoch -1 or -2. Raises Refused."""
    if not env.tables.exists(request.group_id):
        raise no_group(request.group_id)
    change = GroupChange(env.tables, request.group_id)
    if request.instance_id is None:
        member = change.members.get(request.member_id)
        if member is None:
            raise no_member(request.member_id, request.group_id)
    else:
        holder = change.static_member(request.instance_id)
        member = check_instance(holder, request.member_id, request.instance_id, request.group_id)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        _leave_for_now(change, member)
    else:
        remove_members(env, downgrades, change, [member])
    return change.result(
        m.ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    )


def _leave_for_now(change: GroupChange, member: Member) -> None:
    """What it has stays reserved until its session is over, and is its own again at any epoch."""
    current = change.standing(member.member_id)
    assigned = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in current.assigned.items()}
    change.put_current(
        member.member_id, replace(current, epoch=STATIC_LEAVE_EPOCH, assigned=assigned, revoking={})
    )


def remove_members(
    env: Environment, downgrades: Downgrades, change: GroupChange, members: Iterable[Member]
) -> None:
    """Take members out, in the middle of an operation of the group."""
    leaving = {member.member_id: member for member in members}
    if not leaving:
        return
    if downgrades.is_due(change, leaving):
        downgrades.convert(change, leaving, None, rebalance="the last member of the newer protocol has gone")
        return
    for member_id in leaving:
        change.remove_member(member_id)
    drop_unused_regexes(change, leaving.values())
    update_epoch(env, change, bump=True)
    if not change.members:  # nothing is left to assign, and who joins next need not wait for it
        change.put_targets(TargetEpoch(change.epoch.epoch), {})


def drop_unused_regexes(change: GroupChange, gone: Iterable[Member]) -> None:
    """Forget what was found for expressions that only `gone` subscribed to."""
    gone_regexes = subscribed_regexes(gone)
    left = change.subscribed_regexes() if gone_regexes else {}
    for regex in gone_regexes:
        if regex not in left and regex in change.regexes:
            change.put_regex(regex, None)

"""Members of a consumer group that speak the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

A member's epoch is what it takes for a generation. Its join is a heartbeat with everything in it, sync hands
it its assignment, and heartbeats only tell it to join again: when the target has moved on, when it has to
give something up, when partitions it waits for are free.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from coordinator.group.classic import events as ev
from coordinator.group.classic.replies import join_refused, left, sync_refused
from coordinator.group.consumer.assign import update_target
from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.checks import check_instance
from coordinator.group.consumer.downgrade import Downgrades
from coordinator.group.consumer.embedded import (
    PROTOCOL_TYPE,
    BadBytes,
    by_id,
    read_subscription,
    write_assignment,
)
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.errors import Refused, no_member
from coordinator.group.consumer.heartbeat import check_room, step, subscribe, take_over_instance
from coordinator.group.consumer.leave import remove_members
from coordinator.group.consumer.member import ClassicPart, Member, MemberState
from coordinator.group.consumer.regexes import RegexResolver
from coordinator.group.consumer.settings import MigrationPolicy
from coordinator.result import CoordinatorError, Result
from protocol import messages as m
from protocol.errors import ErrorCode

MEMBER_ID_REQUIRED_FROM = 4
Response: TypeAlias = m.JoinGroupResponse | m.SyncGroupResponse | m.HeartbeatResponse | m.LeaveGroupResponse


@dataclass(slots=True)
class Answer:
    """A response; `committed` is to be called when its records are, before it leaves."""

    response: Response
    committed: Callable[[], None] | None = None


def refused(event: ev.Request, error: ErrorCode) -> Response:
    """The answer with an error."""
    match event:
        case ev.JoinGroup():
            member_id = "" if error is ErrorCode.GROUP_MAX_SIZE_REACHED else event.member_id
            return join_refused(event.version, error, member_id)
        case ev.SyncGroup():
            return sync_refused(error)
        case ev.Heartbeat():
            return m.HeartbeatResponse(error_code=error)
        case ev.LeaveGroup():
            return m.LeaveGroupResponse(error_code=error)


class ClassicRequests:
    """See the module; the group exists, and has members."""

    def __init__(self, env: Environment, downgrades: Downgrades, resolver: RegexResolver) -> None:
        self._env = env
        self._downgrades = downgrades
        self._resolver = resolver

    def handle(self, group_id: str, event: ev.Request) -> Result[Answer]:
        """Any of the four requests; refusals are answers."""
        change = GroupChange(self._env.tables, group_id)
        try:
            match event:
                case ev.JoinGroup():
                    answer = self._join(change, event)
                case ev.SyncGroup():
                    answer = self._sync(change, event)
                case ev.Heartbeat():
                    answer = self._heartbeat(change, event)
                case ev.LeaveGroup():
                    answer = self._leave(change, event)
        except CoordinatorError as error:
            for undo in change.undos:
                undo()
            return Result([], Answer(refused(event, error.error)))
        return change.result(answer)

    def _join(self, change: GroupChange, event: ev.JoinGroup) -> Answer:
        env, group_id = self._env, change.group_id
        if env.settings.migration is MigrationPolicy.DISABLED:
            raise Refused(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Cannot join the consumer group {group_id} with the classic protocol because the group "
                "migration is disabled.",
            )
        unknown = event.member_id == ev.NO_MEMBER_ID
        member_id = env.new_member_id() if unknown else event.member_id
        check_room(env, change, event.member_id, event.instance_id)
        self._check_protocols(change, event)
        if unknown and event.instance_id is None and event.version >= MEMBER_ID_REQUIRED_FROM:
            return Answer(join_refused(event.version, ErrorCode.MEMBER_ID_REQUIRED, member_id))
        try:
            subscription = read_subscription(event.protocols[0][1])
        except BadBytes:
            raise Refused(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The subscription of the member does not parse."
            ) from None
        held = None if event.instance_id is None else change.static_member(event.instance_id)
        member = self._member(change, event, member_id, held, unknown)
        updated = Member(
            member_id,
            event.instance_id if event.instance_id is not None else member.instance_id,
            subscription.rack_id or member.rack,
            event.client_id,
            event.client_host,
            tuple(sorted(dict.fromkeys(subscription.topics))),
            "",
            event.rebalance_timeout_ms,
            member.assignor,
            ClassicPart(event.session_timeout_ms, event.protocols),
        )
        changed = subscribe(env, self._resolver, change, member, updated)
        downgrade = (
            held is not None
            and held.classic is None
            and self._downgrades.is_due(change, {held.member_id: held, member_id: updated}, updated)
        )
        update_target(env, change)
        owned = by_id(subscription.owned_partitions, env.topics)
        now = step(env, change, updated, owned, subscription_changed=changed)
        response = m.JoinGroupResponse(
            member_id=member_id,
            generation_id=now.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=event.protocols[0][0],
        )
        if downgrade:
            why = None if _everybody_has_its_part(change) else "not everybody has its part of the assignment"
            self._downgrades.convert(change, {}, updated, rebalance=why)
            response.generation_id = change.epoch.epoch
            return Answer(response)

        # At once: whoever does not hear of its records in time may be a member all the same.
        env.watch.sessions.renew(group_id, member_id, event.session_timeout_ms)

        def committed() -> None:
            env.watch.joined(group_id, member_id)
            env.watch.await_sync(group_id, member_id, event.rebalance_timeout_ms)

        return Answer(response, committed)

    def _member(
        self, change: GroupChange, event: ev.JoinGroup, member_id: str, held: Member | None, unknown: bool
    ) -> Member:
        if event.instance_id is None:
            return change.members.get(member_id) or Member(member_id)
        if not unknown:
            return check_instance(held, member_id, event.instance_id, change.group_id)
        if held is None:
            return Member(member_id)
        return take_over_instance(change, held, member_id)

    def _check_protocols(self, change: GroupChange, event: ev.JoinGroup) -> None:
        """A protocol name that all classic members have must be left."""
        offered = {name for name, _ in event.protocols}
        others = [
            {name for name, _ in member.classic.protocols}
            for member_id, member in change.members.items()
            if member.classic is not None and member_id != event.member_id
        ]
        if event.protocol_type != PROTOCOL_TYPE or not offered.intersection(*others):
            raise Refused(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Member {event.member_id}'s classic protocols are not supported.",
            )

    def _known(self, change: GroupChange, event: ev.SyncGroup | ev.Heartbeat) -> tuple[Member, ClassicPart]:
        if event.instance_id is None:
            member = change.members.get(event.member_id)
            if member is None:
                raise no_member(event.member_id, change.group_id)
        else:
            holder = change.static_member(event.instance_id)
            member = check_instance(holder, event.member_id, event.instance_id, change.group_id)
        classic = _classic(member)
        if event.generation != change.standing(member.member_id).epoch:
            raise Refused(ErrorCode.ILLEGAL_GENERATION, "The generation is not the member's epoch.")
        return member, classic

    def _sync(self, change: GroupChange, event: ev.SyncGroup) -> Answer:
        env, group_id = self._env, change.group_id
        member, classic = self._known(change, event)
        name, metadata = classic.protocols[0]
        for named, chosen in ((event.protocol_type, PROTOCOL_TYPE), (event.protocol_name, name)):
            if named is not None and named != chosen:
                raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The protocol is not the member's.")
        current = change.standing(member.member_id)
        if (
            change.target_epoch.epoch > current.epoch
            and current.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            env.watch.await_join(group_id, member.member_id, member.rebalance_timeout_ms)
            raise Refused(ErrorCode.REBALANCE_IN_PROGRESS, "The member has to join again.")

        env.watch.sessions.renew(group_id, member.member_id, classic.session_timeout_ms)

        def committed() -> None:
            env.watch.synced(group_id, member.member_id)

        response = m.SyncGroupResponse(
            protocol_type=event.protocol_type,
            protocol_name=event.protocol_name,
            assignment=write_assignment(current.assigned, env.topics, metadata),
        )
        return Answer(response, committed)

    def _heartbeat(self, change: GroupChange, event: ev.Heartbeat) -> Answer:
        env, group_id = self._env, change.group_id
        member, classic = self._known(change, event)
        env.watch.sessions.renew(group_id, member.member_id, classic.session_timeout_ms)
        current = change.standing(member.member_id)
        error = ErrorCode.NONE
        if (
            current.epoch < change.target_epoch.epoch
            or current.state is MemberState.UNREVOKED_PARTITIONS
            or (
                current.state is MemberState.UNRELEASED_PARTITIONS
                and not self._waits(change, member.member_id)
            )
        ):
            error = ErrorCode.REBALANCE_IN_PROGRESS
            env.watch.await_join(group_id, member.member_id, member.rebalance_timeout_ms)
        return Answer(m.HeartbeatResponse(error_code=error))

    def _waits(self, change: GroupChange, member_id: str) -> bool:
        """Whether another member still holds what this one is to get."""
        assigned = change.standing(member_id).assigned
        return any(
            change.holder(topic_id, partition) not in (None, member_id)
            for topic_id, numbers in change.target(member_id).items()
            for partition in sorted(numbers)
            if partition not in assigned.get(topic_id, {})
        )

    def _leave(self, change: GroupChange, event: ev.LeaveGroup) -> Answer:
        """Members of either protocol may be named: administrators remove them so."""
        errors: list[ErrorCode] = []
        going: dict[str, Member] = {}
        for each in event.members:
            try:
                if each.instance_id is None:
                    member = change.members.get(each.member_id)
                    if member is None or each.member_id in going:
                        raise no_member(each.member_id, change.group_id)
                else:
                    holder = change.static_member(each.instance_id)
                    asked = each.member_id or (holder.member_id if holder is not None else "")
                    member = check_instance(holder, asked, each.instance_id, change.group_id)
            except Refused as error:
                errors.append(error.error)
                continue
            going[member.member_id] = member
            errors.append(ErrorCode.NONE)
        remove_members(self._env, self._downgrades, change, going.values())
        return Answer(left(event, errors))


def _everybody_has_its_part(change: GroupChange) -> bool:
    """Whether the target is that of the group epoch, and all members are there: nobody has another's part."""
    epoch = change.epoch.epoch
    standing = [change.standing(member_id) for member_id in change.members]
    return change.target_epoch.epoch == epoch and all(
        each.epoch == epoch and each.state is MemberState.STABLE for each in standing
    )


def _classic(member: Member) -> ClassicPart:
    if member.classic is None:
        raise Refused(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol."
        )
    return member.classic

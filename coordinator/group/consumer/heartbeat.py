"""ConsumerGroupHeartbeat: joining, staying, learning what to revoke and what to take.

In order: the member is found or made; what it says of itself is written where it is new; the group epoch
rises where that calls for an assignment; the assignor runs; the member takes a step towards its target; its
session begins again. All records of one heartbeat are one batch, and most heartbeats have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from coordinator.group.consumer.assign import preferred_assignor, update_epoch, update_target
from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.checks import check_epoch, check_instance
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.errors import Refused, no_group, no_member
from coordinator.group.consumer.expressions import compile_regex
from coordinator.group.consumer.leave import drop_unused_regexes
from coordinator.group.consumer.member import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    Current,
    Member,
    MemberState,
)
from coordinator.group.consumer.reconcile import MustRejoin, Step, reconcile
from coordinator.group.consumer.regexes import RegexResolver
from coordinator.group.consumer.subscriptions import topic_ids_of
from coordinator.group.consumer.upgrade import Upgrades
from coordinator.group.modern.assignment import Assignment, from_wire
from coordinator.group.room import NO_MEMORY
from coordinator.result import Result
from protocol import messages as m
from protocol.errors import ErrorCode


def see_all(topic: str) -> bool:
    """Nobody is kept from seeing a topic."""
    return True


@dataclass(frozen=True, slots=True)
class Caller:
    """Where a request comes from. `may_describe` tells which topics its regular expression may match."""

    client_id: str = ""
    client_host: str = ""
    may_describe: Callable[[str], bool] = see_all


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The operation; see the module."""

    env: Environment
    upgrades: Upgrades
    resolver: RegexResolver

    def heartbeat(
        self, request: m.ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> Result[m.ConsumerGroupHeartbeatResponse]:
        """A heartbeat with an epoch of 0 or above. Raises Refused, and then has changed nothing."""
        env, group_id = self.env, request.group_id
        change = GroupChange(env.tables, group_id)
        try:
            joins = request.member_epoch == JOIN_EPOCH
            if not env.tables.exists(group_id):
                if not joins:
                    raise no_group(group_id)
                self.upgrades.take_over(change)
            return self._beat(change, request, caller, joins)
        except Refused:
            for undo in change.undos:
                undo()
            raise

    def _beat(
        self, change: GroupChange, request: m.ConsumerGroupHeartbeatRequest, caller: Caller, joins: bool
    ) -> Result[m.ConsumerGroupHeartbeatResponse]:
        env = self.env
        owned = None if request.topic_partitions is None else from_wire(request.topic_partitions)
        check_room(env, change, request.member_id, request.instance_id)
        member_id = request.member_id or env.new_member_id()
        member = self._find(change, request, member_id, owned, joins)
        before = change.standing(member.member_id)
        updated = _updated(member, request, caller)
        changed = subscribe(env, self.resolver, change, member, updated, caller.may_describe)
        update_target(env, change)
        now = step(env, change, updated, owned, subscription_changed=changed)
        env.watch.sessions.renew(
            change.group_id,
            member_id,
            env.settings.group_config(change.group_id, "consumer.session.timeout.ms"),
        )
        full = (
            request.rebalance_timeout_ms != -1
            and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
            and request.topic_partitions is not None
        )
        response = m.ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=now.epoch,
            heartbeat_interval_ms=env.settings.group_config(
                change.group_id, "consumer.heartbeat.interval.ms"
            ),
        )
        if (
            joins
            or full
            or now.assigned.keys() != before.assigned.keys()
            or any(
                partitions.keys() != before.assigned[topic_id].keys()
                for topic_id, partitions in now.assigned.items()
            )
        ):
            response.assignment = _assignment(now)
        return change.result(response)

    def _find(
        self,
        change: GroupChange,
        request: m.ConsumerGroupHeartbeatRequest,
        member_id: str,
        owned: Assignment | None,
        joins: bool,
    ) -> Member:
        """The member a heartbeat is of, or a new one. Raises Refused."""
        instance_id = request.instance_id
        if instance_id is None:
            member = change.members.get(member_id)
            if member is None:
                if not joins:
                    raise no_member(member_id, change.group_id)
                return Member(member_id)
            check_epoch(change.standing(member_id), request.member_epoch, owned)
            return member
        holder = change.static_member(instance_id)
        if not joins:
            member = check_instance(holder, member_id, instance_id, change.group_id)
            check_epoch(change.standing(member_id), request.member_epoch, owned)
            return member
        if holder is None:
            return change.members.get(member_id) or Member(member_id)
        if holder.classic is None and change.standing(holder.member_id).epoch != STATIC_LEAVE_EPOCH:
            raise Refused(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group because "
                f"the instance id is owned by member {holder.member_id}.",
            )
        return take_over_instance(change, holder, member_id)


def check_room(env: Environment, change: GroupChange, member_id: str, instance_id: str | None) -> None:
    """GROUP_MAX_SIZE_REACHED for one more member. Raises Refused."""
    if instance_id is not None and change.static_member(instance_id) is not None:
        return
    if len(change.members) >= env.settings.max_size and member_id not in change.members:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {env.settings.max_size} members.",
        )


def take_over_instance(change: GroupChange, holder: Member, member_id: str) -> Member:
    """A static member joins again, under an id that may be another."""
    new = replace(holder, member_id=member_id)
    if member_id == holder.member_id:
        change.put_current(
            member_id, replace(change.standing(member_id), epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        )
    else:
        change.replace_member(holder, new)
    return new


def subscribe(
    env: Environment,
    resolver: RegexResolver,
    change: GroupChange,
    member: Member,
    updated: Member,
    may_describe: Callable[[str], bool] = see_all,
) -> bool:
    """Write what is new of a member, and let the group epoch follow. True if its subscription is another.

    Raises Refused (INVALID_REGULAR_EXPRESSION; COORDINATOR_NOT_AVAILABLE where memory is short).
    """
    known = change.members.get(updated.member_id)
    if updated != known and not env.tables.has_room(known, updated):
        raise Refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_MEMORY)
    new_regex = updated.regex != member.regex
    if new_regex and updated.regex and updated.regex not in change.regexes:
        compile_regex(updated.regex)
    votes_change = updated.assignor != member.assignor
    assignor = preferred_assignor(env, change.members.values()) if votes_change else ""
    if updated != member or updated.member_id not in change.members:
        change.put_member(updated)
    if new_regex:
        drop_unused_regexes(change, [member])
    resolved = new_regex and (not updated.regex or updated.regex in change.regexes)
    topics_changed = updated.topics != member.topics
    if votes_change:
        votes_change = preferred_assignor(env, change.members.values()) != assignor
    bump = topics_changed or resolved or votes_change
    update_epoch(env, change, bump=bump)
    resolver.refresh(change, may_describe)
    return topics_changed or new_regex


def step(
    env: Environment,
    change: GroupChange,
    member: Member,
    owned: Assignment | None,
    *,
    subscription_changed: bool,
) -> Current:
    """A member's step towards its target, written where it leads somewhere. Raises Refused."""
    member_id = member.member_id
    before = change.standing(member_id)
    epoch = change.target_epoch.epoch
    if not subscription_changed and before.is_reconciled_to(epoch):
        return before
    try:
        now = reconcile(
            before,
            Step(
                member_id,
                epoch,
                change.target(member_id),
                owned,
                lambda: topic_ids_of(member, change.regexes, env.topics),
                change.holder,
                subscription_changed,
            ),
        )
    except MustRejoin:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. "
            "The member must abandon all its partitions and rejoin.",
        ) from None
    if now is before or (now == before and member_id in change.current):
        return before
    change.put_current(member_id, now)
    if member.classic is None:
        if now.state is MemberState.UNREVOKED_PARTITIONS:
            env.watch.await_revocation(change.group_id, member_id, now.epoch, member.rebalance_timeout_ms)
        else:
            env.watch.end_revocation(change.group_id, member_id)
    return now


def _updated(member: Member, request: m.ConsumerGroupHeartbeatRequest, caller: Caller) -> Member:
    """The member with what the request says; what it leaves out stays."""
    names: Iterable[str] | None = request.subscribed_topic_names
    updated = Member(
        member.member_id,
        request.instance_id if request.instance_id is not None else member.instance_id,
        request.rack_id if request.rack_id is not None else member.rack,
        caller.client_id,
        caller.client_host,
        member.topics if names is None else tuple(sorted(dict.fromkeys(names))),
        request.subscribed_topic_regex if request.subscribed_topic_regex is not None else member.regex,
        request.rebalance_timeout_ms if request.rebalance_timeout_ms != -1 else member.rebalance_timeout_ms,
        request.server_assignor if request.server_assignor is not None else member.assignor,
    )
    return member if updated == member else updated


def _assignment(current: Current) -> m.ConsumerGroupHeartbeatResponse.Assignment:
    return m.ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            m.ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in sorted(current.assigned.items())
        ]
    )

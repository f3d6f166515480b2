"""A classic group becomes a consumer group when the first member of the newer protocol joins it.

An empty one always may: it has nothing but its record. One with members goes on with all of them, who keep
their ids and partitions and speak the classic protocol until they are restarted; the group's generation is
its epoch. Requests of theirs that wait are answered REBALANCE_IN_PROGRESS, so they join again, and join this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import Member as ClassicMember
from coordinator.group.classic.snapshot import tombstone
from coordinator.group.classic.states import GroupState
from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.embedded import (
    PROTOCOL_TYPE,
    BadBytes,
    OwnUserData,
    read_assignment,
    read_subscription,
)
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.errors import Refused, not_a_consumer_group
from coordinator.group.consumer.member import ClassicPart, Current, Member
from coordinator.group.consumer.subscriptions import subscribed_topics
from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.records import GroupEpoch, TargetEpoch
from coordinator.group.modern.topics import metadata_hash
from coordinator.group.records import group_record
from protocol import messages as m
from protocol.errors import ErrorCode

NO_TOPICS_SEEN = 0  # as metadata hash
_log = logging.getLogger(__name__)


class ClassicSide(Protocol):
    """The classic groups of the shard, as conversions need them."""

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """The group, as it is now."""

    def end_for_upgrade(self, group_id: str) -> Callable[[], None]:
        """Forget the group and answer what waits; the call brings back what its last record says."""

    def begin_downgraded(self, group_id: str, rebalance: str | None) -> Callable[[], None]:
        """The group's record is about to be applied: begin its sessions soon, and a rebalance where a reason
        is given. The call takes the group away again.
        """


class Upgrades:
    """See the module."""

    def __init__(self, env: Environment, classic: ClassicSide) -> None:
        self._env = env
        self._classic = classic

    def take_over(self, change: GroupChange) -> None:
        """Make room for a consumer group, with the members of a classic one. Nothing happens before the
        change's result is taken. Raises Refused (GROUP_ID_NOT_FOUND).
        """
        group_id = change.group_id
        group = self._classic.classic_group(group_id)
        if group is None:
            if self._env.parts.is_taken(group_id):
                raise not_a_consumer_group(group_id)
            return
        if group.state is GroupState.EMPTY:
            change.records.append(group_record(*_gone(group_id)))
        else:
            self._check(group)
            change.records.append(group_record(*_gone(group_id)))
            self._convert(change, group)
        change.effects.append(lambda: self._classic.end_for_upgrade(group_id))

    def _check(self, group: ClassicGroup) -> None:
        if not self._env.settings.migration.upgrades:
            raise _refused(group, "online upgrade is disabled")
        if group.protocol_type != PROTOCOL_TYPE:
            raise _refused(group, "the group does not use the consumer embedded protocol")
        if len(group.members) > self._env.settings.max_size:
            raise _refused(group, "the group size exceeds the consumer group maximum size")

    def _convert(self, change: GroupChange, group: ClassicGroup) -> None:
        generation = max(group.generation, 1)
        members: dict[str, Member] = {}
        assignments: dict[str, Assignment] = {}
        for classic in group.members.values():
            try:
                members[classic.member_id] = _member(classic, group.protocol_name)
                assignments[classic.member_id] = read_assignment(classic.assignment, self._env.topics)
            except OwnUserData:
                raise _refused(
                    group,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch "
                    "to a default assignor before re-attempting the upgrade",
                ) from None
            except BadBytes:
                raise _refused(group, "the embedded consumer protocol is malformed") from None
        for member_id, member in members.items():
            change.put_member(member)
            self._env.watch.sessions.renew(
                change.group_id, member_id, group.members[member_id].session_timeout_ms
            )
        # In a rebalance, partitions of those who left belong to nobody: that calls for another assignment.
        settled = group.state is GroupState.STABLE
        self._env.seen.pop(change.group_id, None)
        names = subscribed_topics(members.values(), {})
        change.put_epoch(
            GroupEpoch(generation, metadata_hash(self._env.topics, names) if settled else NO_TOPICS_SEEN)
        )
        change.put_targets(TargetEpoch(generation), assignments)
        for member_id, assignment in assignments.items():
            assigned = {
                topic_id: dict.fromkeys(numbers, generation) for topic_id, numbers in assignment.items()
            }
            change.put_current(member_id, Current(generation, generation, assigned=assigned))
        _log.info("Group %s: %d classic members go on in a consumer group", group.group_id, len(members))


def _gone(group_id: str) -> tuple[m.GroupMetadataKey, m.GroupMetadataValue | None]:
    gone = tombstone(group_id)
    return gone.key, gone.value


def _refused(group: ClassicGroup, why: str) -> Refused:
    text = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    _log.info(text)
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, text)


def _member(classic: ClassicMember, protocol: str | None) -> Member:
    names = [name for name, _ in classic.protocols]
    chosen = protocol if protocol in names else names[0]
    subscription = read_subscription(classic.metadata(chosen))
    return Member(
        classic.member_id,
        classic.instance_id,
        subscription.rack_id or None,
        classic.client_id,
        classic.client_host,
        tuple(sorted(dict.fromkeys(subscription.topics))),
        "",
        classic.rebalance_timeout_ms,
        None,
        ClassicPart(classic.session_timeout_ms, classic.protocols),
    )

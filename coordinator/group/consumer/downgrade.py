"""A consumer group becomes a classic one when only members of the classic protocol are left in it.

That happens when the last other member goes, or is a static one that comes back as a classic client. The
group epoch is the generation; the members keep what they have until they join the rebalance that follows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from coordinator.group.classic.events import GroupSettings
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.member import Member as ClassicMember
from coordinator.group.classic.snapshot import group_record as classic_snapshot
from coordinator.group.classic.states import GroupState
from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.embedded import PROTOCOL_TYPE, write_assignment
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.member import Current, Epochs, Member
from coordinator.group.consumer.upgrade import ClassicSide
from coordinator.group.records import group_record

_log = logging.getLogger(__name__)


class Downgrades:
    """See the module."""

    def __init__(self, env: Environment, classic: ClassicSide) -> None:
        self._env = env
        self._classic = classic

    def is_due(
        self, change: GroupChange, leaving: Mapping[str, Member], joining: Member | None = None
    ) -> bool:
        """Whether only classic members are left without `leaving` (but with `joining`), and may go on."""
        left = [member for member_id, member in change.members.items() if member_id not in leaving]
        if not left and joining is None:
            return False
        if any(member.classic is None for member in left):
            return False
        if not self._env.settings.migration.downgrades:
            _log.info("Group %s stays a consumer group: online downgrade is disabled", change.group_id)
            return False
        return len(left) + (joining is not None) <= self._env.settings.classic_max_size

    def convert(
        self,
        change: GroupChange,
        leaving: Mapping[str, Member],
        joining: Member | None,
        *,
        rebalance: str | None,
    ) -> None:
        """Write the classic group in place of this one: what the change has written before does not count.

        `joining` is among the change's members already. A reason has the group rebalance at once.
        """
        group_id = change.group_id
        group = ClassicGroup(
            group_id,
            GroupSettings(),
            self._env.parts.random,
            state=GroupState.STABLE,
            state_since_ms=self._env.now_ms(),
            generation=change.epoch.epoch,
            protocol_type=PROTOCOL_TYPE,
        )
        for member_id, member in change.members.items():
            if member_id not in leaving:
                group.add(self._classic_member(change, member))
        group.protocol_name = group.choose_protocol()
        self._env.forget(group_id)
        change.records = self._env.tables.group_tombstones(group_id)
        record = classic_snapshot(group)
        change.records.append(group_record(record.key, record.value))
        change.effects.append(lambda: self._classic.begin_downgraded(group_id, rebalance))
        _log.info(
            "Group %s goes on as a classic group: %s", group_id, rebalance or "a member came back as one"
        )

    def _classic_member(self, change: GroupChange, member: Member) -> ClassicMember:
        assert member.classic is not None, "only classic members are left"
        protocols = member.classic.protocols
        return ClassicMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.classic.session_timeout_ms,
            protocols,
            write_assignment(_owned(change.standing(member.member_id)), self._env.topics, protocols[0][1]),
        )


def _owned(current: Current) -> Epochs:
    """Everything that a member may have now. Kafka writes its target; but if the group is upgraded again
    before the member has joined the rebalance, what is not written here would be free for others.
    """
    owned = dict(current.assigned)
    for topic_id, partitions in current.revoking.items():
        owned[topic_id] = {**owned.get(topic_id, {}), **partitions}
    return owned

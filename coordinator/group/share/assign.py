"""Target assignments of share groups: computed from the group as it is, for a large one beside requests."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.records import SHARE, TargetEpoch
from coordinator.group.modern.steps import Steps
from coordinator.group.modern.target import MemberSpec, complete, target_records
from coordinator.group.modern.topics import known_topics
from coordinator.group.share.groups import ShareGroups
from coordinator.group.share.members import ShareMember
from coordinator.group.share.state_partitions import StatePartitions
from coordinator.result import Result
from protocol.errors import ErrorCode

_log = logging.getLogger(__name__)


def compute_targets(
    groups: ShareGroups,
    group_id: str,
    members: Mapping[str, ShareMember],
    names: Iterable[str],
    state: StatePartitions,
) -> Steps[dict[str, Assignment]]:
    """Targets of all members. `names` are the subscribed topics that exist; only partitions that have share
    state are handed out.
    """
    ids = {topic.name: topic.topic_id for topic in known_topics(groups.parts.topics, names).values()}
    specs = {
        member_id: MemberSpec(
            frozenset(map(ids.__getitem__, ids.keys() & member.topics)),
            groups.tables.target(group_id, member_id),
            rack=member.rack_id,
        )
        for member_id, member in members.items()
    }
    partitions = {
        topic_id: sorted(state.initialized[topic_id].partitions)
        for topic_id in ids.values()
        if topic_id in state.initialized
    }
    assigned = yield from groups.assignor.assign(specs, partitions)
    return complete(assigned, specs)


def store_targets(groups: ShareGroups, group_id: str, epoch: int, assigned: Mapping[str, Assignment]) -> None:
    """What was computed beside requests becomes the target of that epoch, for the members there are now. Who
    came since has nothing yet, and raised the epoch.
    """
    tables = groups.tables

    def operation() -> Result[None]:
        if not tables.target_epoch(group_id).epoch < epoch <= tables.epoch(group_id).epoch:
            return Result([], None)
        after = complete(assigned, tables.members.row(group_id))
        if not tables.may_assign(group_id, after):
            return Result([], None)
        made = TargetEpoch(epoch, groups.parts.clock.now_ms())
        return Result(target_records(SHARE, group_id, made, tables.targets.row(group_id), after), None)

    def decided(error: ErrorCode, _: None) -> None:
        if error is not ErrorCode.NONE:
            _log.warning("Share group %s: its target was not written: %s", group_id, error.message)

    groups.parts.context.write(operation, decided)

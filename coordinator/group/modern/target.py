"""The target assignment: what each member should have, as an assignor of this broker says.

An assignor sees all members and the partitions that may be handed out, and answers for all of them. Only
what changed is written (record types 7 or 13 for members, 6 or 12 for the group).

Computing is paced: not more often than an interval (group.consumer.assignment.interval.ms, KIP-1263), so a
group whose members join one after the other is not assigned anew for each of them. That of a large group goes
on beside requests (`steps`), and its outcome may find other members than it began with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from coordinator.group.modern.assignment import NOTHING, Assignment
from coordinator.group.modern.records import (
    NO_TIMESTAMP,
    Kinds,
    TargetEpoch,
    target_epoch_record,
    target_record,
)
from coordinator.group.modern.steps import Steps
from coordinator.result import CoordinatorRecord


class MemberSpec(NamedTuple):
    """What an assignor knows of a member: topics (ids, only existing ones), and its last target."""

    topics: frozenset[bytes]
    target: Assignment
    instance_id: str | None = None
    rack: str | None = None


class AssignorFailed(Exception):
    """An assignor has no answer; the request that needed it hears UNKNOWN_SERVER_ERROR."""


class Assignor(Protocol):
    """A server-side assignor. Raises AssignorFailed."""

    name: str

    def assign(
        self, members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
    ) -> Steps[dict[str, Assignment]]:
        """Targets of all members; who gets nothing may be left out.

        `partitions` has, for every topic that anybody subscribes to, those that may be handed out, ascending.
        """


def may_compute(last: TargetEpoch, interval_ms: int, now_ms: int) -> bool:
    """Whether the target may be computed again now."""
    if last.timestamp_ms == NO_TIMESTAMP or interval_ms == 0:
        return True
    return now_ms >= last.timestamp_ms + interval_ms


def target_records(
    kinds: Kinds,
    group_id: str,
    epoch: TargetEpoch,
    before: Mapping[str, Assignment],
    after: Mapping[str, Assignment],
) -> list[CoordinatorRecord]:
    """Records from the targets `before` to those `after`, which names every member."""
    records = [
        target_record(kinds, group_id, member_id, target)
        for member_id, target in after.items()
        if before.get(member_id) != target
    ]
    records.append(target_epoch_record(kinds, group_id, epoch))
    return records


def complete(assigned: Mapping[str, Assignment], members: Iterable[str]) -> dict[str, Assignment]:
    """An assignor's answer with every member in it, in the order of members."""
    return {member_id: assigned.get(member_id, NOTHING) for member_id in members}

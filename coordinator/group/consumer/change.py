"""One operation's view of one group: live state with what the operation itself has changed on top.

Records do not change the tables until they are appended, but the steps of one operation build on each other.
Rows are copied at the first change only, so that a heartbeat with nothing to do copies nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from coordinator.group.consumer.member import NEW, Current, Member, current_record, member_record
from coordinator.group.consumer.subscriptions import subscribed_regexes
from coordinator.group.consumer.tables import (
    OLD_TOPICS_KEY_TYPE,
    REGEX_KEY_TYPE,
    Cell,
    ConsumerTables,
    Resolved,
    cells_of,
    regex_record,
)
from coordinator.group.modern.assignment import NOTHING, Assignment
from coordinator.group.modern.records import (
    CONSUMER,
    GroupEpoch,
    TargetEpoch,
    group_epoch_record,
    target_record,
    tombstone,
)
from coordinator.group.modern.target import target_records
from coordinator.result import CoordinatorRecord, Result

R = TypeVar("R")


class GroupChange:
    """See the module. `records` is what to append; rows are to look at only."""

    def __init__(self, tables: ConsumerTables, group_id: str) -> None:
        self.tables = tables
        self.group_id = group_id
        self.records: list[CoordinatorRecord] = []
        self.undos: list[Callable[[], None]] = []
        self.effects: list[Callable[[], Callable[[], None]]] = []
        self.epoch: GroupEpoch = tables.epoch(group_id)
        self.target_epoch: TargetEpoch = tables.target_epoch(group_id)
        self.members: dict[str, Member] = tables.members.row(group_id)
        self.current: dict[str, Current] = tables.current.row(group_id)
        self.targets: dict[str, Assignment] = tables.targets.row(group_id)
        self.regexes: dict[str, Resolved] = tables.regexes.row(group_id)
        self._holders: dict[Cell, str | None] = {}
        self._static: dict[str, str | None] = {}
        self._own_members = self._own_current = self._own_targets = self._own_regexes = False

    def result(self, response: R) -> Result[R]:
        """The operation's result. What has to happen outside the tables (`effects`, each of which returns
        the way back) happens now.
        """
        undos = self.undos
        undos += [effect() for effect in self.effects]

        def undo() -> None:
            for each in undos:
                each()

        return Result(self.records, response, undo=undo)

    def holder(self, topic_id: bytes, partition: int) -> str | None:
        """The member that holds a partition."""
        cell = (topic_id, partition)
        if cell in self._holders:
            return self._holders[cell]
        return self.tables.holders.get(self.group_id, cell)

    def static_member(self, instance_id: str) -> Member | None:
        """The member with this instance id."""
        if instance_id in self._static:
            member_id = self._static[instance_id]
        else:
            member_id = self.tables.static_ids.get(self.group_id, instance_id)
        return None if member_id is None else self.members.get(member_id)

    def subscribed_regexes(self) -> dict[str, None]:
        """The regular expressions of all members, each once."""
        if self._own_members:
            return subscribed_regexes(self.members.values())
        return dict.fromkeys(self.tables.regex_users.row(self.group_id))

    def standing(self, member_id: str) -> Current:
        """Where a member stands."""
        return self.current.get(member_id, NEW)

    def target(self, member_id: str) -> Assignment:
        """The target of a member; empty where it has none."""
        return self.targets.get(member_id, NOTHING)

    def put_member(self, member: Member) -> None:
        """Write record 5."""
        if not self._own_members:
            self.members, self._own_members = dict(self.members), True
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        self.records.append(member_record(self.group_id, member))

    def put_current(self, member_id: str, current: Current) -> None:
        """Write record 8."""
        self._stand(member_id, current)
        self.records.append(current_record(self.group_id, member_id, current))

    def put_target(self, member_id: str, target: Assignment) -> None:
        """Write record 7 for one member."""
        self._set_target(member_id, target)
        self.records.append(target_record(CONSUMER, self.group_id, member_id, target))

    def put_targets(self, epoch: TargetEpoch, targets: dict[str, Assignment]) -> None:
        """Write records 7 where they change, and 6. `targets` names all members."""
        self.records += target_records(CONSUMER, self.group_id, epoch, self.targets, targets)
        self.targets, self._own_targets = targets, True
        self.target_epoch = epoch

    def put_epoch(self, epoch: GroupEpoch) -> None:
        """Write record 3."""
        self.epoch = epoch
        self.records.append(group_epoch_record(CONSUMER, self.group_id, epoch))
        if self.tables.old_topics.row(self.group_id):
            self.records.append(tombstone(OLD_TOPICS_KEY_TYPE, self.group_id))

    def put_regex(self, regex: str, resolved: Resolved | None) -> None:
        """Write record 16, or its tombstone."""
        if not self._own_regexes:
            self.regexes, self._own_regexes = dict(self.regexes), True
        if resolved is None:
            self.regexes.pop(regex, None)
            self.records.append(tombstone(REGEX_KEY_TYPE, self.group_id, regex))
        else:
            self.regexes[regex] = resolved
            self.records.append(regex_record(self.group_id, regex, resolved))

    def remove_member(self, member_id: str) -> None:
        """Write the tombstones of a member."""
        if not self._own_members:
            self.members, self._own_members = dict(self.members), True
        instance_id = self.members.pop(member_id).instance_id
        if instance_id is not None:
            self._static[instance_id] = None
        self._stand(member_id, None)
        self._set_target(member_id, None)
        self.records += self.tables.member_tombstones(self.group_id, member_id)

    def replace_member(self, old: Member, new: Member) -> None:
        """A static member comes back under another id: it takes over target and partitions."""
        standing, target = self.standing(old.member_id), self.target(old.member_id)
        self.remove_member(old.member_id)
        self.put_member(new)
        self.put_target(new.member_id, target)
        self.put_current(new.member_id, replace(standing, epoch=0, previous_epoch=0))

    def _stand(self, member_id: str, current: Current | None) -> None:
        for cell in cells_of(self.current.get(member_id)):
            if self.holder(*cell) == member_id:
                self._holders[cell] = None
        for cell in cells_of(current):
            self._holders[cell] = member_id
        if not self._own_current:
            self.current, self._own_current = dict(self.current), True
        if current is None:
            self.current.pop(member_id, None)
        else:
            self.current[member_id] = current

    def _set_target(self, member_id: str, target: Assignment | None) -> None:
        if not self._own_targets:
            self.targets, self._own_targets = dict(self.targets), True
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

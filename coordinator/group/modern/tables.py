"""The replayed state of all consumer groups, or of all share groups, of one partition.

Every change comes by a record, through `replay`, and can be taken back by the shard's journal; operations
look at the live cells, admin requests at the committed ones. Values are never changed in place.

A group exists while it has an epoch (record type 3 or 11), the last record that is removed, or members: one
that subscribes to nothing leads to no epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from coordinator.group.modern.assignment import NOTHING, Assignment
from coordinator.group.modern.records import (
    GroupEpoch,
    Kinds,
    TargetEpoch,
    read_group_epoch,
    read_key,
    read_target,
    read_target_epoch,
    tombstone,
)
from coordinator.group.records import UnknownRecords
from coordinator.group.room import MEMBER_BYTES, Claim, Room, assigned_room, assigned_size
from coordinator.journal import Journal, JournaledTable
from coordinator.result import CoordinatorRecord

M = TypeVar("M")
C = TypeVar("C")
V = TypeVar("V")

_log = logging.getLogger(__name__)
ONLY: Final = ""  # the one cell of tables that have a value for each group
FIRST_EPOCH: Final = GroupEpoch(1)  # of a group without a record of it, as Kafka 4.4 counts
NO_TARGET: Final = TargetEpoch(1)


@dataclass(frozen=True, slots=True)
class Codec(Generic[M, C]):
    """How one protocol writes its members and their current assignments.

    The readers get the bytes with their version and return None for a version that is not known. `size` tells
    how much memory a member's own words take, about.
    """

    kinds: Kinds
    read_member: Callable[[str, bytes], M | None]
    read_current: Callable[[bytes], C | None]
    size: Callable[[M], int] = lambda member: 0


class ModernTables(Generic[M, C]):
    """See the module. Rows are group ids; cells of the last three tables are member ids."""

    def __init__(
        self,
        journal: Journal,
        codec: Codec[M, C],
        unknown: UnknownRecords,
        room: Room | None = None,
        assigned: Room | None = None,
    ) -> None:
        self.kinds = codec.kinds
        self._codec = codec
        self._unknown = unknown
        self.epochs: JournaledTable[str, str, GroupEpoch] = JournaledTable(journal)
        self.target_epochs: JournaledTable[str, str, TargetEpoch] = JournaledTable(journal)
        self.members: JournaledTable[str, str, M] = JournaledTable(journal)
        self.targets: JournaledTable[str, str, Assignment] = JournaledTable(journal)
        self.current: JournaledTable[str, str, C] = JournaledTable(journal)
        self._room = Room() if room is None else room
        self._claims: JournaledTable[str, str, Claim] = JournaledTable(journal)
        self._assigned_room = assigned_room() if assigned is None else assigned
        self._assigned: JournaledTable[str, str, Claim] = JournaledTable(journal)

    def exists(self, group_id: str) -> bool:
        """Whether there is such a group, live."""
        return self.epochs.get(group_id, ONLY) is not None or bool(self.members.row(group_id))

    def exists_committed(self, group_id: str) -> bool:
        """Whether there is such a group by committed records."""
        committed = self.epochs.committed(group_id, ONLY)
        return committed is not None or bool(self.members.committed_row(group_id))

    def group_ids(self) -> list[str]:
        """All groups, live."""
        return list(dict.fromkeys(self.epochs.outer_keys()) | dict.fromkeys(self.members.outer_keys()))

    def committed_group_ids(self) -> list[str]:
        """All groups by committed records."""
        keys = dict.fromkeys(self.epochs.committed_outer_keys())
        return list(keys | dict.fromkeys(self.members.committed_outer_keys()))

    def epoch(self, group_id: str) -> GroupEpoch:
        """The live epoch; the first one for a group that is not there yet."""
        return self.epochs.get(group_id, ONLY) or FIRST_EPOCH

    def committed_epoch(self, group_id: str) -> GroupEpoch:
        """The epoch by committed records."""
        return self.epochs.committed(group_id, ONLY) or FIRST_EPOCH

    def committed_target_epoch(self, group_id: str) -> TargetEpoch:
        """The target's epoch by committed records."""
        return self.target_epochs.committed(group_id, ONLY) or NO_TARGET

    def target_epoch(self, group_id: str) -> TargetEpoch:
        """What the live target assignment was made for."""
        return self.target_epochs.get(group_id, ONLY) or NO_TARGET

    def target(self, group_id: str, member_id: str) -> Assignment:
        """The live target of a member; empty where it has none."""
        return self.targets.get(group_id, member_id) or NOTHING

    def has_room(self, before: M | None, member: M) -> bool:
        """Whether there is memory for a member as it is now."""
        size = self._codec.size
        grown = size(member) - (-MEMBER_BYTES if before is None else size(before))
        return self._room.has(grown)

    def may_assign(self, group_id: str, targets: Mapping[str, Assignment]) -> bool:
        """Whether there is memory for new targets of all members of a group."""
        has = sum(claim.size for claim in self._assigned.row(group_id).values())
        return self._may_grow(group_id, sum(map(assigned_size, targets.values())) - has)

    def _may_grow(self, group_id: str, size: int) -> bool:
        """The log tells it once where there is no memory."""
        room = self._assigned_room
        if room.has(size):
            return True
        if not room.is_told:
            room.is_told = True
            _log.warning(
                "What is assigned to the members of all groups takes as much memory as this broker gives it: "
                "group %s and others that are to have more keep what they have", group_id,
            )  # fmt: skip
        return False

    def replay(self, kind: int, key: bytes, value: bytes | None) -> None:
        """Apply a record of one of `kinds.common`. Raises MalformedMessage."""
        kinds = self.kinds
        if kind == kinds.group:
            group_id, _ = read_key(key, named=False)
            epoch = None if value is None else read_group_epoch(kinds, value)
            self._set(self.epochs, group_id, ONLY, epoch, kind, value)
        elif kind == kinds.target_epoch:
            group_id, _ = read_key(key, named=False)
            made_for = None if value is None else read_target_epoch(kinds, value)
            self._set(self.target_epochs, group_id, ONLY, made_for, kind, value)
        else:
            group_id, member_id = read_key(key, named=True)
            self._replay_member(kind, group_id, member_id, value)

    def _replay_member(self, kind: int, group_id: str, member_id: str, value: bytes | None) -> None:
        kinds = self.kinds
        if kind == kinds.member:
            member = None if value is None else self._codec.read_member(member_id, value)
            self._set(self.members, group_id, member_id, member, kind, value)
            if member is not None:
                claim = Claim(self._room, MEMBER_BYTES + self._codec.size(member))
                self._claims.put(group_id, member_id, claim)
            elif value is None:
                self._claims.remove(group_id, member_id)
        elif kind == kinds.target:
            target = None if value is None else read_target(kinds, value)
            self._set(self.targets, group_id, member_id, target, kind, value)
            if target:
                self._assigned.put(group_id, member_id, Claim(self._assigned_room, assigned_size(target)))
            elif target is not None or value is None:
                self._assigned.remove(group_id, member_id)
        else:
            assert kind == kinds.current, f"record type {kind} has no table"
            current = None if value is None else self._codec.read_current(value)
            self._set(self.current, group_id, member_id, current, kind, value)

    def _set(
        self,
        table: JournaledTable[str, str, V],
        group_id: str,
        cell: str,
        read: V | None,
        kind: int,
        value: bytes | None,
    ) -> None:
        if read is not None:
            table.put(group_id, cell, read)
        elif value is None:
            table.remove(group_id, cell)
        else:
            self._unknown.see("value version", kind, int.from_bytes(value[:2], "big"))

    def member_tombstones(self, group_id: str, member_id: str) -> list[CoordinatorRecord]:
        """Records that remove a member: current assignment, target, member."""
        kinds = self.kinds
        return [tombstone(kind, group_id, member_id) for kind in (kinds.current, kinds.target, kinds.member)]

    def group_tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Records that remove a group, the group itself last: half of them never leave members behind
        without a group.
        """
        kinds = self.kinds
        records: list[CoordinatorRecord] = []
        for kind, table in ((kinds.current, self.current), (kinds.target, self.targets)):
            records += [tombstone(kind, group_id, member_id) for member_id in table.row(group_id)]
        records.append(tombstone(kinds.target_epoch, group_id))
        records += [tombstone(kinds.member, group_id, member_id) for member_id in self.members.row(group_id)]
        records.append(tombstone(kinds.group, group_id))
        return records

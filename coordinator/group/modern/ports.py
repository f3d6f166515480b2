"""How the groups of a newer protocol plug into a shard: what they are given, and what they must answer."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from coordinator.group.offset_expiry import Expiry
from coordinator.group.records import UnknownRecords
from coordinator.group.room import Room, assigned_room
from coordinator.ports import Clock, Topics
from coordinator.result import CoordinatorRecord
from coordinator.runtime import Context
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.entropy import Random


class Committer(NamedTuple):
    """Who commits or fetches offsets, as the request says; old versions leave parts out.

    `generation` is a member's epoch in the newer protocols.
    """

    member_id: str = ""
    instance_id: str | None = None
    generation: int = -1


@dataclass(frozen=True, slots=True)
class ShardParts:
    """What one shard's groups work with. `is_taken` tells whether a group id belongs to another protocol.
    `room` is shared by the members of all groups of the broker, `assigned` by what is assigned to them.
    """

    context: Context
    clock: Clock
    random: Random
    topics: Topics
    unknown: UnknownRecords
    is_taken: Callable[[str], bool]
    room: Room = field(default_factory=Room)
    assigned: Room = field(default_factory=assigned_room)


class ModernGroups(Protocol):
    """The groups of one protocol on one partition, as the shard and the manager use them.

    Where a group id is given and not said otherwise, the group exists. Live state decides except in
    `listed`, which shows what is committed.
    """

    key_types: frozenset[int]

    def replay(self, kind: int, key: bytes, value: bytes | None) -> None:
        """Apply a record of one of `key_types`. Raises MalformedMessage."""

    def on_loaded(self, now_ms: int) -> None:
        """All records are there: begin sessions and other timers."""

    def on_unloaded(self) -> None:
        """The partition has gone; its timers have been taken back."""

    def exists(self, group_id: str) -> bool:
        """Whether this protocol has a group of this id, live."""

    def group_ids(self) -> list[str]:
        """All groups, live."""

    def committed_group_ids(self) -> list[str]:
        """All groups, by committed records."""

    def listed(self, group_id: str) -> m.ListGroupsResponse.ListedGroup:
        """A committed group as ListGroups shows it."""

    def is_empty(self, group_id: str) -> bool:
        """Whether a group has no members; only then may it be deleted."""

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Records that remove an empty group; its offsets are removed by the caller."""

    def check_commit(
        self, group_id: str, committer: Committer, version: int, *, transactional: bool
    ) -> ErrorCode:
        """Whether somebody may commit offsets to a group; ILLEGAL_GENERATION, STALE_MEMBER_EPOCH, …"""

    def check_partition(self, group_id: str, committer: Committer, topic: str, partition: int) -> ErrorCode:
        """Whether a commit that passed `check_commit` may touch a partition."""

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether somebody may fetch a group's offsets; by live records."""

    def subscribed(self, group_id: str) -> Set[str]:
        """The topics that members may read, so that their offsets are not to be removed."""

    def expiry(self, group_id: str) -> Expiry | None:
        """Which offsets of a group may expire."""

"""How much memory the members of all groups of this broker may take together, and what is assigned to them.

Whoever may join a group may bring megabytes that stay until its session ends, half an hour later if it likes;
Kafka lets its heap fill up. Here all members, and the ids that wait to be used (KIP-394), share a `Room`.
Those that are large get no more than half of it, so that a few of them leave enough for many small ones. Who
finds no room hears COORDINATOR_NOT_AVAILABLE, with which clients try again later.

What the broker itself finds and assigns for them (KIP-848, KIP-932) has a room of its own, as a few bytes may
ask for 10,000 partitions: a group that finds none there goes on with what it has, until there is some again.

What is counted is about what the objects take, and as long as they are there: a `Claim` gives its bytes back
when nothing refers to it any more. So members that are taken back with records that were not appended, or
that go with their partition, need no book-keeping of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from sys import getsizeof
from typing import Final

ROOM_BYTES: Final = 64 << 20
ASSIGNED_BYTES: Final = 160 << 20
SMALL_BYTES: Final = 16 << 10
MEMBER_BYTES: Final = 2000  # of one in a group of its own, without what it brings
PENDING_BYTES: Final = 1000
PROTOCOL_BYTES: Final = 200
ASSIGNED_TOPIC_BYTES: Final = 550  # a topic in one member's target, with what follows from it
ASSIGNED_PARTITION_BYTES: Final = 250
RESOLVED_TOPIC_BYTES: Final = 100  # that a regular expression matches
NO_MEMORY: Final = "The members of all groups take as much memory as this broker gives them."


@dataclass(slots=True)
class Room:
    """`taken` counts the claims that are alive. `is_told`: the log has a line about there being none left."""

    limit_bytes: int = ROOM_BYTES
    taken: int = 0
    is_told: bool = False

    def has(self, size: int) -> bool:
        """Whether there is room for a claim of `size` bytes, or for one to grow by that."""
        limit = self.limit_bytes if size <= SMALL_BYTES else self.limit_bytes // 2
        return size <= 0 or self.taken + size <= limit


class Claim:
    """A part of the room, for as long as this object lives."""

    __slots__ = ("_room", "size")

    def __init__(self, room: Room, size: int) -> None:
        self._room = room
        self.size = size
        room.taken += size

    def __del__(self) -> None:
        self._room.taken -= self.size

    def __eq__(self, other: object) -> bool:
        """Claims of one size are alike: what is replayed claims what the live state does."""
        return isinstance(other, Claim) and other.size == self.size

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Claim({self.size})"


def pending_size(member_id: str) -> int:
    """Of an id that was handed out."""
    return PENDING_BYTES + 2 * getsizeof(member_id)


def protocols_size(protocols: Iterable[tuple[str, bytes]]) -> int:
    """Of what a member of the classic protocol brings."""
    return sum(PROTOCOL_BYTES + getsizeof(name) + len(metadata) for name, metadata in protocols)


def names_size(names: Iterable[str]) -> int:
    """Of topics that a member subscribes to."""
    return sum(map(getsizeof, names))


def assigned_room() -> Room:
    """For what is assigned to the members of all groups."""
    return Room(ASSIGNED_BYTES)


def assigned_size(assignment: Mapping[bytes, Collection[int]]) -> int:
    """Of one member's target and of what follows from it: what it has, and who holds what."""
    return ASSIGNED_TOPIC_BYTES * len(assignment) + ASSIGNED_PARTITION_BYTES * sum(
        map(len, assignment.values())
    )

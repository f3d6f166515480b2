"""How much memory the members of all groups of this broker may take together.

Whoever may join a group may bring megabytes that stay until its session ends, half an hour later if it likes;
Kafka lets its heap fill up. Here all members, and the ids that wait to be used (KIP-394), share a `Room`.
Those that are large get no more than half of it, so that a few of them leave enough for many small ones. Who
finds no room hears COORDINATOR_NOT_AVAILABLE, with which clients try again later.

What is counted is about what the objects take, and as long as they are there: a `Claim` gives its bytes back
when nothing refers to it any more. So members that are taken back with records that were not appended, or
that go with their partition, need no book-keeping of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from sys import getsizeof
from typing import Final

ROOM_BYTES: Final = 64 << 20
SMALL_BYTES: Final = 16 << 10
MEMBER_BYTES: Final = 2000  # of one in a group of its own, without what it brings
PENDING_BYTES: Final = 1000
PROTOCOL_BYTES: Final = 200
NO_MEMORY: Final = "The members of all groups take as much memory as this broker gives them."


@dataclass(slots=True)
class Room:
    """`taken` counts the claims that are alive."""

    limit_bytes: int = ROOM_BYTES
    taken: int = 0

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

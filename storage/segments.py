"""The segments of a log in the order of their base offsets; the last one is active."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice

from storage.segment import Segment


class Segments:
    """An ordered map from base offset to segment.

    `changes` counts what was added and removed, and `swapping` is set while segments are replaced: whoever
    searches on another thread can tell that it has to look again.
    """

    __slots__ = ("_bases", "_items", "changes", "swapping")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._items: list[Segment] = []
        self.changes = 0
        self.swapping = False

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    @property
    def active(self) -> Segment:
        return self._items[-1]

    @property
    def first(self) -> Segment:
        return self._items[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._items)

    def add(self, segment: Segment) -> None:
        at = bisect_left(self._bases, segment.base_offset)
        if at < len(self._bases) and self._bases[at] == segment.base_offset:
            raise ValueError(f"{segment.directory} has a segment at {segment.base_offset} already")
        self.changes += 1
        self._bases.insert(at, segment.base_offset)
        self._items.insert(at, segment)

    def remove(self, segment: Segment) -> None:
        at = bisect_left(self._bases, segment.base_offset)
        assert self._items[at] is segment
        self.changes += 1
        del self._bases[at], self._items[at]

    def floor(self, offset: int) -> Segment | None:
        """The segment with the greatest base not above `offset`."""
        at = bisect_right(self._bases, offset)
        return self._items[at - 1] if at else None

    def after(self, segment: Segment) -> Segment | None:
        """The next segment, if any."""
        at = bisect_right(self._bases, segment.base_offset)
        return self._items[at] if at < len(self._items) else None

    def since(self, first: Segment) -> Iterator[Segment]:
        """That segment and all later ones."""
        return islice(self._items, bisect_left(self._bases, first.base_offset), None)

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that contains `offset` and all later ones."""
        return self._items[max(0, bisect_right(self._bases, offset) - 1) :]

    def bases(self) -> list[int]:
        """Ascending; a copy."""
        return self._bases.copy()

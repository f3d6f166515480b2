"""Which transactions keep the last stable offset of a log down.

A transaction is open from its first record to its marker, and undecided for readers until the marker is
replicated, that is below the high watermark. Markers come in the order of their offsets, and leave in it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

NONE_OPEN = (1 << 63) - 1


class OpenTransactions:
    """First offsets of the open transactions, and of those closed by a marker that is not replicated yet."""

    __slots__ = ("_open", "unreplicated")

    def __init__(self) -> None:
        self._open: list[int] = []
        # (marker, first offset), both ascending: a transaction that began no earlier than one whose marker is
        # later never decides anything, and has no entry.
        self.unreplicated: deque[tuple[int, int]] = deque()

    def begin(self, first_offset: int) -> None:
        """A transaction wrote its first record there."""
        insort(self._open, first_offset)

    def end(self, first_offset: int, marker: int) -> int:
        """It was closed by the marker at that offset; the offset below which everything is decided then."""
        opened, waiting = self._open, self.unreplicated
        at = bisect_left(opened, first_offset)
        if at < len(opened) and opened[at] == first_offset:
            del opened[at]
        while waiting and waiting[-1][1] >= first_offset:
            waiting.pop()
        waiting.append((marker, first_offset))
        return opened[0] if opened else marker + 1

    def replicated(self, high_watermark: int) -> None:
        """Markers below this offset are replicated."""
        waiting = self.unreplicated
        while waiting and waiting[0][0] < high_watermark:
            waiting.popleft()

    @property
    def first_unstable(self) -> int:
        """First offset of the earliest undecided transaction; `NONE_OPEN` if all are decided."""
        first = self._open[0] if self._open else NONE_OPEN
        return min(first, self.unreplicated[0][1]) if self.unreplicated else first

    @property
    def open_count(self) -> int:
        return len(self._open)

    def clear(self) -> None:
        self._open.clear()
        self.unreplicated.clear()

"""`.index`: int32 offset relative to the segment's base, int32 position in the log file, both big-endian.

An entry says that the batch which starts at `position` has `offset` as its LAST offset. Offsets and positions
strictly increase; sparse; no checksum.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right

from runtime.files import FileSystem
from storage.index_file import IndexFile

RELATIVE_MAX = 0x7FFFFFFF


class OffsetIndex(IndexFile):
    """Offset to position. Offsets in this interface are absolute."""

    __slots__ = ("_offsets", "_positions")
    ENTRY = struct.Struct(">ii")

    def __init__(
        self, files: FileSystem, path: str, base_offset: int, *, fresh: bool = False, repair: bool = True
    ) -> None:
        self._offsets = array("i")
        self._positions = array("i")
        super().__init__(files, path, base_offset, fresh=fresh, repair=repair)

    def load(self) -> None:
        """Bring the columns into memory, which the active segment needs."""
        if self._loaded:
            return
        self._loaded = True
        if self.entries:
            self._decode(self._read(0, self.entries))

    def _decode(self, packed: bytes) -> None:
        both = array("i", packed)
        if sys.byteorder == "little":
            both.byteswap()
        self._offsets, self._positions = both[0::2], both[1::2]

    def unload(self) -> None:
        """Sealed: the file serves from now on."""
        self.write_out(create=True)
        self._loaded = False
        self._offsets, self._positions = array("i"), array("i")

    def append(self, last_offset: int, position: int) -> None:
        """ValueError unless both are above the last entry's and the offset fits 31 bits above the base."""
        relative = last_offset - self.base_offset
        offsets = self._offsets
        if not 0 <= relative <= RELATIVE_MAX:
            raise ValueError(f"offset {last_offset} does not fit the index of base {self.base_offset}")
        if offsets and relative <= offsets[-1]:
            raise ValueError(f"offset {last_offset} is not above the last entry of {self.path}")
        offsets.append(relative)
        self._positions.append(position)
        self._add(self.ENTRY.pack(relative, position))

    def entry(self, number: int) -> tuple[int, int]:
        """(last offset, position) of entry `number`; IndexError beyond the end."""
        if not 0 <= number < self.entries:
            raise IndexError(f"entry {number} of {self.entries} in {self.path}")
        if self._loaded:
            offsets, positions = self._offsets, self._positions
            if number < len(positions):  # else it was sealed just now, while a thread searches
                return self.base_offset + offsets[number], positions[number]
        relative, position = self.raw_entry(number)
        return self.base_offset + relative, position

    def lookup(self, offset: int) -> tuple[int, int]:
        """The greatest entry not above `offset`; (base offset, 0) where there is none."""
        found = self._count_up_to(0, offset - self.base_offset)
        return self.entry(found - 1) if found else (self.base_offset, 0)

    def around(self, offset: int) -> tuple[int, int]:
        """Where to look for the batch that holds `offset`: the position of the last entry below it (0 where
        there is none), and that of the first entry at or above it (-1 where there is none).

        Batches larger than the index interval all have entries, and then the second is the batch itself.
        """
        below = self._count_up_to(0, offset - 1 - self.base_offset)
        before = self.entry(below - 1)[1] if below else 0
        return before, self.entry(below)[1] if below < self.entries else -1

    def offset_from(self, position: int) -> int:
        """The offset of the first entry whose position is not below `position`; -1 where there is none."""
        number = self._count_up_to(1, position - 1)
        return self.entry(number)[0] if number < self.entries else -1

    def position_up_to(self, position: int) -> int:
        """The greatest indexed position not above `position`; 0 where there is none."""
        found = self._count_up_to(1, position)
        return self.entry(found - 1)[1] if found else 0

    def _count_up_to(self, column: int, value: int) -> int:
        """How many entries have a value not above `value` in the column (0 offsets, 1 positions)."""
        if self._loaded:
            return bisect_right(self._positions if column else self._offsets, value)
        low, high = 0, self.entries
        first, data = self._page
        per_page = len(data) // self.ENTRY.size
        if per_page:  # the page at hand often holds the answer
            if self.raw_entry(first)[column] <= value:
                low = first + 1
                if self.raw_entry(first + per_page - 1)[column] > value:
                    high = first + per_page - 1
            else:
                high = first
        while low < high:
            middle = (low + high) // 2
            if self.raw_entry(middle)[column] <= value:
                low = middle + 1
            else:
                high = middle
        return low

    @property
    def last(self) -> tuple[int, int]:
        """The last entry; (base offset, 0) where there is none."""
        return self.entry(self.entries - 1) if self.entries else (self.base_offset, 0)

    def truncate_to(self, offset: int) -> None:
        """Drop entries at and above `offset`."""
        self.truncate_entries(self._count_up_to(0, offset - 1 - self.base_offset))

    def truncate_position(self, position: int) -> None:
        """Drop entries whose position is not below `position`."""
        self.truncate_entries(self._count_up_to(1, position - 1))

    def truncate_entries(self, entries: int) -> None:
        self._cut(entries)
        if self._loaded:
            del self._offsets[entries:], self._positions[entries:]

    def problem(self) -> str | None:
        """What is wrong with the file, if anything (Kafka's sanity check)."""
        if self.entries and self.last[0] < self.base_offset:
            return f"{self.path}: last offset {self.last[0]} is below the base {self.base_offset}"
        if self.handle is not None and self.handle.size() % self.ENTRY.size:
            return f"{self.path}: size {self.handle.size()} is not a multiple of {self.ENTRY.size}"
        return None

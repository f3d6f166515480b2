"""`.timeindex`: int64 timestamp, int32 offset relative to the segment's base, both big-endian.

An entry says that `timestamp` is the greatest one so far in the segment and `offset` the LAST offset of the
(earliest) batch that has it. Timestamps strictly increase, offsets do not decrease.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right

from runtime.files import FileSystem
from storage.index_file import IndexFile


class TimeIndex(IndexFile):
    """Timestamp to offset. Offsets in this interface are absolute."""

    __slots__ = ("_offsets", "_timestamps")
    ENTRY = struct.Struct(">qi")

    def __init__(
        self, files: FileSystem, path: str, base_offset: int, *, fresh: bool = False, repair: bool = True
    ) -> None:
        self._timestamps = array("q")
        self._offsets = array("i")
        super().__init__(files, path, base_offset, fresh=fresh, repair=repair)

    def load(self) -> None:
        """Bring the columns into memory, which the active segment needs."""
        if self._loaded:
            return
        self._loaded = True
        if self.entries:
            self._decode(self._read(0, self.entries))

    def _decode(self, packed: bytes) -> None:
        columns = tuple(zip(*self.ENTRY.iter_unpack(packed), strict=True)) or ((), ())
        self._timestamps, self._offsets = array("q", columns[0]), array("i", columns[1])

    def unload(self) -> None:
        """Sealed: the file serves from now on."""
        self.write_out(create=True)
        self._loaded = False
        self._timestamps, self._offsets = array("q"), array("i")

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the timestamp is news. ValueError if either goes back behind the last entry."""
        relative = offset - self.base_offset
        if self._timestamps:
            if timestamp == self._timestamps[-1] and relative == self._offsets[-1]:
                return
            if relative < self._offsets[-1]:
                raise ValueError(f"offset {offset} is below the last entry of {self.path}")
            if timestamp < self._timestamps[-1]:
                raise ValueError(f"timestamp {timestamp} is below the last entry of {self.path}")
            if timestamp == self._timestamps[-1]:
                return
        self._timestamps.append(timestamp)
        self._offsets.append(relative)
        self._add(self.ENTRY.pack(timestamp, relative))

    def entry(self, number: int) -> tuple[int, int]:
        """(timestamp, offset) of entry `number`; IndexError beyond the end."""
        if not 0 <= number < self.entries:
            raise IndexError(f"entry {number} of {self.entries} in {self.path}")
        if self._loaded:
            timestamps, offsets = self._timestamps, self._offsets
            if number < len(offsets):  # else it was sealed just now, while a thread searches
                return timestamps[number], self.base_offset + offsets[number]
        timestamp, relative = self.raw_entry(number)
        return timestamp, self.base_offset + relative

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The greatest entry not above `timestamp`; (-1, base offset) where there is none."""
        if self._loaded:
            found = bisect_right(self._timestamps, timestamp)
        else:
            found, high = 0, self.entries
            while found < high:
                middle = (found + high) // 2
                if self.raw_entry(middle)[0] <= timestamp:
                    found = middle + 1
                else:
                    high = middle
        return self.entry(found - 1) if found else (-1, self.base_offset)

    @property
    def last(self) -> tuple[int, int]:
        """The last entry; (-1, base offset) where there is none."""
        return self.entry(self.entries - 1) if self.entries else (-1, self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Drop entries at and above `offset`."""
        keep = self.entries
        while keep and self.entry(keep - 1)[1] >= offset:
            keep -= 1
        self.truncate_entries(keep)

    def truncate_entries(self, entries: int) -> None:
        self._cut(entries)
        if self._loaded:
            del self._timestamps[entries:], self._offsets[entries:]

    def problem(self) -> str | None:
        """What is wrong with the file, if anything (Kafka's sanity check)."""
        if self.entries:
            if self.entry(self.entries - 1)[0] < self.entry(0)[0]:
                return f"{self.path}: the last timestamp is below the first"
            if self.last[1] < self.base_offset:
                return f"{self.path}: last offset {self.last[1]} is below the base {self.base_offset}"
        if self.handle is not None and self.handle.size() % self.ENTRY.size:
            return f"{self.path}: size {self.handle.size()} is not a multiple of {self.ENTRY.size}"
        return None

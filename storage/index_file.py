"""What the two index files have in common: fixed-size entries appended to a file that is never mapped.

The active segment's entries are in memory whole; new ones reach the file in lumps, at the latest at a flush,
a roll or a close, for until then recovery would rebuild them from the log anyway. A sealed segment's entries
stay in the file and are read by pages of 4 KiB, of which the last one is kept: a consumer that reads on stays
in it. The file has exactly the size of its entries (Kafka preallocates; both accept each other's). A tail of
zeros, as a crashed Kafka leaves it, does not count.
"""

from __future__ import annotations

import struct

from runtime.files import FileHandle, FileSystem

PAGE_BYTES = 4096
LUMP_BYTES = 4096  # entries in memory that are worth a write


class IndexFile:
    """Entries of `entry.size` bytes. Subclasses keep the columns in memory and know what they mean."""

    __slots__ = (
        "_files",
        "_loaded",
        "_page",
        "_pending",
        "_written",
        "base_offset",
        "entries",
        "handle",
        "path",
    )
    ENTRY: struct.Struct

    def __init__(
        self, files: FileSystem, path: str, base_offset: int, *, fresh: bool = False, repair: bool = True
    ) -> None:
        """`fresh`: there is no file yet; it is made when the first entries are written.

        `repair` False: the file is only looked at, zeros at its end stay.
        """
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.handle: FileHandle | None = None
        self._pending = bytearray()
        self._page = (0, b"")  # number of its first entry, bytes; one value, for lookups run on threads too
        self._written = 0  # entries in the file
        self.entries = 0
        self._loaded = fresh  # whether the columns are in memory
        if not fresh:
            self._open(repair)

    def _open(self, repair: bool) -> None:
        if self._files.exists(self.path):
            self.handle = self._files.open(self.path)
            self.entries = self._written = self.handle.size() // self.ENTRY.size
            if repair:
                if self.handle.size() % self.ENTRY.size:  # a torn write
                    self.handle.truncate(self._written * self.ENTRY.size)
                self._drop_zero_tail()

    def _drop_zero_tail(self) -> None:
        """Find the last entry that is not all zero; the first one may be."""
        if self._written < 2 or any(self._read(self._written - 1, 1)):
            return
        low, high = 1, self._written - 1  # a zero entry follows only zero entries
        while low < high:
            middle = (low + high) // 2
            if any(self._read(middle, 1)):
                low = middle + 1
            else:
                high = middle
        self.entries = self._written = low
        assert self.handle is not None
        self.handle.truncate(low * self.ENTRY.size)

    def _read(self, first: int, count: int) -> bytes:
        assert self.handle is not None
        return self.handle.read_at(first * self.ENTRY.size, count * self.ENTRY.size)

    def raw_entry(self, number: int) -> tuple[int, int]:
        """Entry `number` as it is in the file, through the page last read."""
        size = self.ENTRY.size
        start, data = self._page
        at = (number - start) * size
        if not 0 <= at < len(data):
            per_page = PAGE_BYTES // size
            start = number // per_page * per_page
            data = self._read(start, min(per_page, self._written - start))
            self._page = (start, data)
            at = (number - start) * size
        first, second = self.ENTRY.unpack_from(data, at)
        return first, second

    @property
    def size_bytes(self) -> int:
        return self.entries * self.ENTRY.size

    @property
    def exists(self) -> bool:
        return self.handle is not None

    def _add(self, packed: bytes) -> None:
        self.entries += 1
        self._pending += packed
        if len(self._pending) >= LUMP_BYTES:
            self.write_out()

    def refill(self, packed: bytes) -> None:
        """Replace all entries by these, which reach the file like new ones."""
        self._cut(0)
        self._loaded = True
        self._decode(packed)
        self.entries = len(packed) // self.ENTRY.size
        self._pending = bytearray(packed)
        if len(packed) >= LUMP_BYTES:
            self.write_out()

    def _decode(self, packed: bytes) -> None:
        """Bring packed entries into the columns."""
        raise AssertionError("each kind of index has columns of its own")

    def write_out(self, *, create: bool = False) -> None:
        """Bring entries in memory to the file; `create` makes the file even if there are none."""
        if self.handle is None and (self._pending or create):
            self.handle = self._files.open(self.path, create=True)
            if self.handle.size():  # left over from a segment of the same name
                self.handle.truncate(0)
        if self._pending and self.handle is not None:
            try:
                self.handle.append([self._pending])
            except OSError:
                self.handle.truncate(self._written * self.ENTRY.size)
                raise
            self._pending = bytearray()
            self._written = self.entries

    def _cut(self, entries: int) -> None:
        """Keep the first `entries` entries in file and count; columns are the subclass's."""
        if entries >= self.entries:
            return
        if entries < self._written:
            assert self.handle is not None
            self.handle.truncate(entries * self.ENTRY.size)
            self._written = entries
            self._pending = bytearray()
        else:
            del self._pending[(entries - self._written) * self.ENTRY.size :]
        self.entries = entries
        self._page = (0, b"")

    def rename(self, path: str) -> None:
        if self.handle is not None:
            self.handle.rename(path)
        self.path = path

    def moved(self, path: str) -> None:
        """The directory got another name."""
        self.path = path
        if self.handle is not None:
            self.handle.path = path

    def remove(self) -> None:
        self.close()
        if self._files.exists(self.path):
            self._files.remove(self.path)

    def close(self) -> None:
        """Give up the file; entries that were not written out are lost."""
        if self.handle is not None:
            self.handle.close()
            self.handle = None

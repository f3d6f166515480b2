"""`.txnindex`: the aborted transactions whose abort marker lies in the segment, 34 bytes each.

An entry is int16 version 0, int64 producer id, int64 offset of the transaction's first record (which may lie
in an earlier segment), int64 offset of the marker, int64 last stable offset at that moment. Markers strictly
increase. There is a file only where there is an entry. Entries are written as they come, not synced; what a
full disk keeps from the file waits in memory for the next write. Nothing of it is in memory else: a search
reads the file from the first marker on that matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from runtime.files import FileHandle, FileSystem

VERSION = 0
ENTRY = Struct(">hqqqq")
_PAGE_ENTRIES = 120  # of one read, about 4 KiB
_MARKER = Struct(">q")
_MARKER_AT = 18


class AbortedTxn(NamedTuple):
    """An aborted transaction of `producer_id`: from `first_offset` to the marker at `last_offset`.

    `last_stable_offset`: below it everything was decided when the marker came.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_entries(entries: Iterable[AbortedTxn]) -> bytes:
    """Entries as they are in the file."""
    return b"".join([ENTRY.pack(VERSION, *entry) for entry in entries])


class TxnIndex:
    """See the module."""

    __slots__ = ("_files", "_handle", "_last", "_pending", "_written", "base_offset", "path")

    def __init__(self, files: FileSystem, path: str, base_offset: int, *, fresh: bool = False) -> None:
        """`fresh`: the segment is new, and there is no file."""
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self._handle: FileHandle | None = None
        self._written = 0  # entries in the file
        self._pending: list[AbortedTxn] = []
        if not fresh and files.exists(path):
            self._handle = files.open(path)
            self._written = self._handle.size() // ENTRY.size
        self._last = self._entry(self._written - 1).last_offset if self._written else -1

    def __len__(self) -> int:
        return self._written + len(self._pending)

    @property
    def exists(self) -> bool:
        return self._handle is not None

    @property
    def handle(self) -> FileHandle | None:
        """The file, if there is one."""
        return self._handle

    def append(self, entry: AbortedTxn) -> None:
        """Add an entry and write it. ValueError unless its marker is above the last one's.

        After an OSError the entry is kept, and the next `write_out` tries again.
        """
        if entry.last_offset <= self._last:
            raise ValueError(
                f"the marker at {entry.last_offset} is not above {self._last}, the last one in {self.path}"
            )
        self._last = entry.last_offset
        self._pending.append(entry)
        self.write_out()

    def write_out(self) -> None:
        """Bring entries that are only in memory to the file. Raises OSError."""
        if not self._pending:
            return
        if self._handle is None:
            self._handle = self._files.open(self.path, create=True)
        if self._handle.size() != self._written * ENTRY.size:  # the end of a write that failed, or was torn
            self._handle.truncate(self._written * ENTRY.size)
        pending = self._pending
        self._handle.append([encode_entries(pending)])
        self._written += len(pending)
        self._pending = []

    def __iter__(self) -> Iterator[AbortedTxn]:
        return self._from(0)

    def _from(self, number: int) -> Iterator[AbortedTxn]:
        pending, written = self._pending, self._written
        while number < written:
            count = min(_PAGE_ENTRIES, written - number)
            for _, *fields in ENTRY.iter_unpack(self._read(number, count)):
                yield AbortedTxn(*fields)
            number += count
        yield from pending

    def _read(self, number: int, count: int) -> bytes:
        assert self._handle is not None
        return self._handle.read_at(number * ENTRY.size, count * ENTRY.size)

    def _entry(self, number: int) -> AbortedTxn:
        return AbortedTxn(*ENTRY.unpack(self._read(number, 1))[1:])

    def _count_below(self, offset: int) -> int:
        """How many entries of the file have their marker below `offset`."""
        low, high = 0, self._written
        while low < high:
            middle = (low + high) // 2
            assert self._handle is not None
            marker = self._handle.read_at(middle * ENTRY.size + _MARKER_AT, _MARKER.size)
            if _MARKER.unpack(marker)[0] < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def collect(self, fetch_offset: int, upper_offset: int) -> tuple[list[AbortedTxn], bool]:
        """Transactions that touch [fetch_offset, upper_offset), and whether later segments have none."""
        found: list[AbortedTxn] = []
        if self._last < fetch_offset:
            return found, False
        for entry in self._from(self._count_below(fetch_offset)):
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop entries whose marker lies at or above `offset`."""
        if self._last < offset:
            return
        keep = self._count_below(offset)
        if keep < self._written:
            assert self._handle is not None
            self._handle.truncate(keep * ENTRY.size)
            self._written = keep
        self._pending = [entry for entry in self._pending if entry.last_offset < offset]
        if self._pending:
            self._last = self._pending[-1].last_offset
        else:
            self._last = self._entry(keep - 1).last_offset if keep else -1

    def refill(self, entries: Iterable[AbortedTxn]) -> None:
        """Hold these entries and no others, as recovery found them. No entries: no file."""
        self.remove()
        self._written, self._last, self._pending = 0, -1, []
        for entry in entries:
            self._last = entry.last_offset
            self._pending.append(entry)
        self.write_out()

    def problem(self) -> str | None:
        """What is wrong with the file, if anything: then its segment has to be recovered."""
        if self._handle is None:
            return None
        if self._handle.size() % ENTRY.size:
            return f"{self.path}: size {self._handle.size()} is not a multiple of {ENTRY.size}"
        previous = self.base_offset - 1
        for number in range(0, self._written, _PAGE_ENTRIES):
            count = min(_PAGE_ENTRIES, self._written - number)
            for version, _, _, marker, _ in ENTRY.iter_unpack(self._read(number, count)):
                if version > VERSION or version < 0:
                    return f"{self.path}: version {version}, known is {VERSION}"
                if marker <= previous:
                    return f"{self.path}: a marker at {marker} behind {previous}"
                previous = marker
        return None

    def rename(self, path: str) -> None:
        if self._handle is not None:
            self._handle.rename(path)
        self.path = path

    def remove(self) -> None:
        """Give up the file and delete it."""
        self.close()
        if self._files.exists(self.path):
            self._files.remove(self.path)

    def close(self) -> None:
        """Give up the file; entries that were not written are lost."""
        if self._handle is not None:
            self._handle.close()
            self._handle = None

"""One segment: the `.log` file with its indexes, named by the base offset.

Invariants: batches lie back to back with increasing offsets, none below the base, none more than 2^31-1 above
it. `size` counts the bytes whose write has returned; what lies behind it belongs to nobody yet: with
`preallocate` that is zeros up to segment.bytes, until the segment is sealed or closed. An index
entry is made for a batch when its position is more than the interval behind the last indexed batch's; the
first batch never gets one. That rule depends on nothing but the log, so recovery rebuilds the very same
index. Files are opened on first use. The active segment has its two indexes in memory, sealed ones on disk. A
third one, of aborted transactions, is only there where there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from runtime.files import FileHandle, FileSystem
from storage import names, scan
from storage.errors import CorruptLog
from storage.log_config import FOREVER
from storage.offset_index import RELATIVE_MAX, OffsetIndex
from storage.time_index import TimeIndex
from storage.txn_index import AbortedTxn, TxnIndex, encode_entries

if TYPE_CHECKING:
    from storage.segment_scan import ScannedSegment

UNKNOWN = -2  # a timestamp that was not read yet


class Segment:
    """See the module. Positions are file positions, offsets absolute."""

    __slots__ = (
        "_files",
        "_fresh_indexes",
        "_handle",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_offset_index",
        "_time_index",
        "_txn_index",
        "base_offset",
        "created_ms",
        "directory",
        "first_timestamp",
        "jitter_ms",
        "last_indexed_position",
        "size",
    )

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        base_offset: int,
        *,
        now_ms: int,
        jitter_ms: int = 0,
        create: bool = False,
        preallocate_bytes: int = 0,
    ) -> None:
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self._handle: FileHandle | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None
        self._fresh_indexes = create
        self._max_timestamp = -1 if create else UNKNOWN
        self._max_timestamp_offset = -1
        self.created_ms = now_ms
        self.jitter_ms = jitter_ms
        self.first_timestamp = UNKNOWN  # maxTimestamp of the first batch, from which the age is counted
        self.last_indexed_position = 0
        if create:
            self._handle = files.open(self.path(names.LOG), create=True)
            if self._handle.size():
                self._handle.truncate(0)
            if preallocate_bytes:
                self._handle.preallocate(preallocate_bytes)
            self.size = 0
        else:
            self.size = files.size(self.path(names.LOG))

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{names.segment_file(self.base_offset, suffix)}"

    @property
    def handle(self) -> FileHandle:
        """The log file."""
        if self._handle is None:
            self._handle = self._files.open(self.path(names.LOG))
        return self._handle

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            path = self.path(names.OFFSET_INDEX)
            self._offset_index = OffsetIndex(self._files, path, self.base_offset, fresh=self._fresh_indexes)
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            path = self.path(names.TIME_INDEX)
            self._time_index = TimeIndex(self._files, path, self.base_offset, fresh=self._fresh_indexes)
        return self._time_index

    @property
    def txn_index(self) -> TxnIndex:
        """The aborted transactions whose markers lie here."""
        if self._txn_index is None:
            path = self.path(names.TXN_INDEX)
            self._txn_index = TxnIndex(self._files, path, self.base_offset, fresh=self._fresh_indexes)
        return self._txn_index

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of its records; -1 if none is known."""
        if self._max_timestamp == UNKNOWN:
            self._read_max_timestamp()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """Last offset of the first batch that has the greatest timestamp."""
        if self._max_timestamp == UNKNOWN:
            self._read_max_timestamp()
        return self._max_timestamp_offset

    def _read_max_timestamp(self) -> None:
        index = self.time_index
        self._max_timestamp, self._max_timestamp_offset = index.last if index.entries else (-1, -1)

    def raise_max_timestamp(self, timestamp: int, offset: int) -> None:
        self._max_timestamp = timestamp
        self._max_timestamp_offset = offset

    def read_first_timestamp(self) -> int:
        """maxTimestamp of the first batch; 2^63-1 (never old) for an empty segment."""
        if self.size == 0:
            return FOREVER
        if self.first_timestamp == UNKNOWN:
            facts = next(scan.scan(self.handle, 0, self.size, scan.LOCATE_WINDOW), None)
            self.first_timestamp = facts.max_timestamp if facts is not None else -1
        return self.first_timestamp

    @property
    def largest_timestamp(self) -> int:
        """What retention and time lookups go by: the records' greatest, else the file's time of change."""
        known = self.max_timestamp
        return known if known >= 0 else self._files.mtime_ms(self.path(names.LOG))

    def activate(self) -> None:
        """Make ready for appends: indexes into memory, the place of the last entry known."""
        self.offset_index.load()
        self.time_index.load()
        self.last_indexed_position = self.offset_index.last[1]

    def fits(self, last_offset: int) -> bool:
        return 0 <= last_offset - self.base_offset <= RELATIVE_MAX

    def add_index_entry(self, last_offset: int, position: int, max_timestamp: int, max_offset: int) -> None:
        """Index the batch at `position`; `max_timestamp` is the greatest up to and with this batch."""
        self.offset_index.append(last_offset, position)
        if max_timestamp >= 0:
            self.time_index.maybe_append(max_timestamp, max_offset)
        self.last_indexed_position = position

    def indexes_full(self, index_bytes: int) -> bool:
        """Whether no entry fits into segment.index.bytes; one time slot stays for the final entry."""
        return (
            self.offset_index.entries >= index_bytes // 8 or self.time_index.entries >= index_bytes // 12 - 1
        )

    def find_end_offset(self) -> int:
        """The offset after the last whole batch; reads from the last index entry on."""
        if self.size == 0:
            return self.base_offset
        end = self.base_offset
        for facts in scan.scan(self.handle, self.offset_index.last[1], self.size):
            end = facts.last_offset + 1
        return end

    def locate(self, offset: int, extra: int = 0) -> scan.Located | None:
        """The batch that holds `offset`, or the next one behind a gap; None if the segment ends before it.

        `extra` bytes behind what the search needs are read along. Indexes of closed segments are trusted, as
        Kafka trusts them, except where they point out of the file.
        """
        before, after = self.offset_index.around(offset)
        if before + 2 * scan.LOCATE_WINDOW < after < self.size:  # batches too large for one window
            found = scan.holds(self.handle, after, self.size, offset)
            if found is not None:
                return found
        if not 0 <= before < self.size:
            before = 0
        return scan.locate(self.handle, before, self.size, offset, extra)

    def has_sound_index(self) -> bool:
        """Whether the last entry of the offset index, if any, stands for a batch that is there."""
        if not self.offset_index.entries:
            return True
        last_offset, position = self.offset_index.last
        if not 0 <= position < self.size:
            return False
        try:
            facts = next(scan.scan(self.handle, position, self.size, scan.LOCATE_WINDOW), None)
        except CorruptLog:
            return False
        return facts is not None and facts.last_offset == last_offset

    def truncate_position(self, position: int) -> None:
        """Cut the file at the start of a batch, with everything that was derived from what is gone."""
        self.handle.truncate(position)
        self.size = position
        self.offset_index.load()
        self.time_index.load()
        self.offset_index.truncate_position(position)
        end = self.find_end_offset()
        self.time_index.truncate_to(end)
        self.txn_index.truncate_to(end)
        self.last_indexed_position = self.offset_index.last[1]
        self._recompute_max_timestamp()
        if position == 0:
            self.first_timestamp = UNKNOWN

    def _recompute_max_timestamp(self) -> None:
        """From the last time index entry and what follows it."""
        self._read_max_timestamp()
        start = self.offset_index.lookup(self._max_timestamp_offset)[1] if self._max_timestamp >= 0 else 0
        for facts in scan.scan(self.handle, start, self.size):
            if facts.max_timestamp > self._max_timestamp and facts.record_count:
                self.raise_max_timestamp(facts.max_timestamp, facts.last_offset)

    def complete_time_index(self) -> None:
        """Make up for a final time entry that a power cut took from a closed segment."""
        self.activate()
        self._recompute_max_timestamp()
        self.seal()

    def add_final_time_entry(self) -> None:
        """The greatest timestamp goes into the index when the segment is sealed or closed."""
        if self._max_timestamp >= 0 and self.size:
            self.time_index.load()
            self.time_index.maybe_append(self._max_timestamp, self._max_timestamp_offset)

    def seal(self) -> None:
        """No more appends: indexes complete and on disk (not synced), memory given back."""
        self.trim()
        self.add_final_time_entry()
        self.offset_index.unload()
        self.time_index.unload()
        if self._txn_index is not None:
            self._txn_index.write_out()

    def trim(self) -> None:
        """Cut the log file to its size, where it was made longer at once (`preallocate`)."""
        if self._handle is not None:
            self._handle.trim()

    def write_indexes(self) -> None:
        """Bring the indexes to their files; makes the files."""
        self.offset_index.write_out(create=True)
        self.time_index.write_out(create=True)
        if self._txn_index is not None:
            self._txn_index.write_out()

    def handles(self) -> list[FileHandle]:
        """The files to sync, after `write_indexes`."""
        known = (self._offset_index, self._time_index, self._txn_index)
        indexes = [index.handle for index in known if index is not None]
        return [self.handle, *(handle for handle in indexes if handle is not None)]

    def rebuilt(self, found: ScannedSegment) -> int:
        """Take over what reading the whole file gave, and cut what is no log; the bytes that were cut off."""
        self.offset_index.refill(found.offset_entries)
        self.time_index.refill(found.time_entries)
        self.last_indexed_position = found.last_indexed_position
        self.first_timestamp = found.first_timestamp
        self.raise_max_timestamp(found.max_timestamp, found.max_timestamp_offset)
        cut = found.size - found.end
        if cut:
            self.handle.truncate(found.end)
            self.handle.sync()  # or the next power cut would mix the lost tail with what is written now
        self.size = found.end
        return cut

    def replace_indexes(self, found: ScannedSegment, aborted: Sequence[AbortedTxn]) -> None:
        """Put new index files in place of those of a sealed segment; what is no log at its end goes.

        Each is replaced whole, so that what is still damaged after a crash in between is found out again.
        """
        times = found.time_entries
        pack = TimeIndex.ENTRY.pack
        if found.max_timestamp >= 0:
            final = pack(found.max_timestamp, found.max_timestamp_offset - self.base_offset)
            if not times or found.max_timestamp > TimeIndex.ENTRY.unpack(times[-len(final) :])[0]:
                times += final
        if not found.whole:
            self.handle.truncate(found.end)
            self.handle.sync()
        self.close_files()
        self.size = found.end
        if aborted:
            self._files.write_atomic(self.path(names.TXN_INDEX), encode_entries(aborted))
        elif self._files.exists(self.path(names.TXN_INDEX)):
            self._files.remove(self.path(names.TXN_INDEX))
        self._files.write_atomic(self.path(names.TIME_INDEX), times)
        self._files.write_atomic(self.path(names.OFFSET_INDEX), found.offset_entries)

    def rename_suffix(self, old: str, new: str) -> list[str]:
        """Append a suffix to the files, or take it away; the paths of those that exist, as they are now."""
        renamed = []
        if self._handle is not None:
            self._handle.rename(self.path(names.LOG + new))
        else:
            self._files.rename(self.path(names.LOG + old), self.path(names.LOG + new))
        renamed.append(self.path(names.LOG + new))
        for suffix, index in (
            (names.OFFSET_INDEX, self._offset_index),
            (names.TIME_INDEX, self._time_index),
            (names.TXN_INDEX, self._txn_index),
        ):
            if index is not None and index.exists:
                index.rename(self.path(suffix + new))
            elif self._files.exists(self.path(suffix + old)):
                self._files.rename(self.path(suffix + old), self.path(suffix + new))
            else:
                continue
            renamed.append(self.path(suffix + new))
        return renamed

    def close_files(self) -> None:
        """Give up descriptors without writing anything; who opens the log file again finds its size."""
        if self._handle is not None:
            with suppress(OSError):
                self._handle.trim()
            self._handle.close()
            self._handle = None
        for index in (self._offset_index, self._time_index, self._txn_index):
            if index is not None:
                index.close()
        self._offset_index = self._time_index = self._txn_index = None
        self._fresh_indexes = False

"""The second half of a pass: a group of segments is written anew as one, into `.cleaned` files.

Runs of batches that stay as they are go from the window that was read straight into the new file. Index
entries follow the rule of `segment.py`, so that recovery would build the very same files. What was written is
synced piece by piece beside the work: dirty pages that pile up would hold up the appends of the broker, and
syncing everything in the end would hold up the pass.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import TypeAlias

from protocol.records.batch import COUNT_AT, MAX_TIMESTAMP_AT
from runtime.background import at_once
from runtime.files import Buffer, FileHandle, FileSystem
from storage import names, txn_index
from storage.cleaner.batch_filter import BatchFilter
from storage.cleaner.grouping import Source
from storage.cleaner.reading import windows
from storage.scan import V2_OVERHEAD, BatchFacts, facts_at
from storage.txn_index import AbortedTxn

SYNC_BYTES = 4 << 20
Start: TypeAlias = Callable[[Callable[[], None]], Callable[[], None]]
"""Begins some work, perhaps on another thread; what it returns waits for the end."""
_OFFSET_ENTRY = Struct(">ii").pack
_TIME_ENTRY = Struct(">qi").pack
_COUNT, _TIMESTAMP = Struct(">i"), Struct(">q")


@dataclass(slots=True)
class CleanedSegment:
    """What was written. `size` 0: nothing of the group is left but its place."""

    base_offset: int
    size: int
    bytes_read: int
    mtime_ms: int


class SegmentWriter:
    """The `.cleaned` files of one new segment; `took(bytes)` is called for what was written and may wait."""

    def __init__(
        self,
        files: FileSystem,
        directory: str,
        base_offset: int,
        index_interval_bytes: int,
        took: Callable[[int], None],
        start: Start = at_once,
    ) -> None:
        self._files = files
        self._stem = f"{directory}/{names.segment_file(base_offset, '')}"
        self._base = base_offset
        self._interval = index_interval_bytes
        self._took = took
        self._start = start
        self._synced: Callable[[], None] | None = None  # waits for the last sync that was begun
        self._log = self._fresh(names.LOG)
        self._offsets, self._times = bytearray(), bytearray()
        self._indexed = 0
        self._greatest = self._greatest_offset = self._timed = -1
        self._unsynced = 0
        self.position = 0

    def _path(self, suffix: str) -> str:
        return f"{self._stem}{suffix}{names.CLEANED}"

    def _fresh(self, suffix: str) -> FileHandle:
        handle = self._files.open(self._path(suffix), create=True)
        if handle.size():  # of a pass that was broken off
            handle.truncate(0)
        return handle

    def note(self, size: int, last_offset: int, max_timestamp: int, count: int) -> None:
        """A batch of this size follows."""
        if count and max_timestamp > self._greatest:
            self._greatest, self._greatest_offset = max_timestamp, last_offset
        if self.position - self._indexed > self._interval:
            self._offsets += _OFFSET_ENTRY(last_offset - self._base, self.position)
            self._indexed = self.position
            if self._greatest > self._timed:
                self._times += _TIME_ENTRY(self._greatest, self._greatest_offset - self._base)
                self._timed = self._greatest
        self.position += size

    def write(self, parts: list[Buffer]) -> None:
        """The bytes of the batches noted since the last call."""
        if not parts:
            return
        self._log.append(parts)
        size = sum(len(part) for part in parts)
        self._took(size)
        self._unsynced += size
        if self._unsynced >= SYNC_BYTES:
            self._wait()
            self._synced = self._start(self._log.sync)
            self._unsynced = 0

    def _wait(self) -> None:
        if self._synced is not None:
            waiting, self._synced = self._synced, None
            waiting()

    def finish(self, aborted: list[AbortedTxn], mtime_ms: int) -> None:
        """Write the indexes and sync everything; the log file gets its source's time."""
        self._wait()
        if self._greatest > self._timed:
            self._times += _TIME_ENTRY(self._greatest, self._greatest_offset - self._base)
        written = [(names.OFFSET_INDEX, bytes(self._offsets)), (names.TIME_INDEX, bytes(self._times))]
        if aborted:
            entries = [txn_index.ENTRY.pack(txn_index.VERSION, *entry) for entry in aborted]
            written.append((names.TXN_INDEX, b"".join(entries)))
        for suffix, data in written:
            handle = self._fresh(suffix)
            try:
                if data:
                    handle.append([data])
                handle.sync()
            finally:
                handle.close()
        self._log.sync()
        self._files.set_mtime_ms(self._path(names.LOG), mtime_ms)
        self._log.close()

    def abandon(self) -> None:
        """Give up the descriptor; the files are the caller's to remove."""
        with suppress(OSError):
            self._wait()
        self._log.close()


def rewrite(
    files: FileSystem,
    group: list[Source],
    writer: SegmentWriter,
    batch_filter: BatchFilter,
    window_bytes: int,
    took: Callable[[int], None],
    legacy_horizon_ms: int,
) -> CleanedSegment:
    """Clean a group into the writer's files. Raises CorruptLog, OSError."""
    read = 0
    try:
        for source in group:
            batch_filter.keep_legacy_tombstones = source.mtime_ms > legacy_horizon_ms
            handle = files.open(source.path)
            try:
                for data, found in windows(handle, 0, source.size, window_bytes):
                    took(len(data))
                    read += len(data)
                    writer.write(_filtered(data, found, batch_filter, writer))
            finally:
                handle.close()
        transactions = batch_filter.transactions
        aborted, transactions.kept = transactions.kept, []
        writer.finish(aborted, group[-1].mtime_ms)
    except BaseException:
        writer.abandon()
        raise
    return CleanedSegment(group[0].base_offset, writer.position, read, group[-1].mtime_ms)


def _filtered(
    data: bytes, found: list[BatchFacts], batch_filter: BatchFilter, writer: SegmentWriter
) -> list[Buffer]:
    """What stays of a window, in as few pieces as it takes."""
    view = memoryview(data)
    parts: list[Buffer] = []
    first = found[0].position
    begun = -1  # where the run of batches that stay begins
    for facts in found:
        at = facts.position - first
        fate = batch_filter.decide(data, at, facts)
        if fate == "keep":
            if begun < 0:
                begun = at
            writer.note(facts.size, facts.last_offset, facts.max_timestamp, facts.record_count)
            continue
        if begun >= 0:
            parts.append(view[begun:at])
            begun = -1
        if isinstance(fate, bytearray):
            _note_rewritten(fate, facts, writer)
            parts.append(fate)
    if begun >= 0:
        end = found[-1].position - first + found[-1].size
        parts.append(view[begun:end])
    return parts


def _note_rewritten(batch: bytearray, facts: BatchFacts, writer: SegmentWriter) -> None:
    if facts.magic == 2:
        count: int = _COUNT.unpack_from(batch, COUNT_AT)[0]
        timestamp: int = _TIMESTAMP.unpack_from(batch, MAX_TIMESTAMP_AT)[0]
        writer.note(len(batch), facts.last_offset, timestamp, count)
    else:
        written = facts_at(bytes(batch).ljust(V2_OVERHEAD, b"\0"), 0, 0)
        writer.note(len(batch), written.last_offset, written.max_timestamp, 1)

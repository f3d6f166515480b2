"""One pass over one log: the map is built, then group after group of segments is written anew.

The pass lives where its work is done, in a worker process, between the calls of the broker; the broker puts
each finished group into the log before it asks for the next. A worker has one pass at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime import background
from runtime.files import FileSystem
from runtime.os_files import OsFileSystem
from storage.cleaner.batch_filter import BatchFilter, FilterSettings, FilterStats, LastRecord
from storage.cleaner.grouping import Source
from storage.cleaner.key_map import KeyMapBuilder
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.reading import WINDOW_BYTES_MIN
from storage.cleaner.rewriting import CleanedSegment, SegmentWriter, Start, rewrite
from storage.cleaner.throttle import Throttle
from storage.cleaner.transactions import CleanedTransactions
from storage.txn_index import AbortedTxn


@dataclass(slots=True)
class PassRequest:
    """What a pass has to know. Offsets absolute, times in ms, `directory` the partition's.

    `dirty`: segments from the one that holds `first_dirty` on, up to `first_uncleanable`. `aborted`: aborted
    transactions of the whole log below `first_uncleanable`. `legacy_horizon_ms`: tombstones of old formats go
    from segments that were not changed since.
    """

    directory: str
    dirty: Sequence[Source]
    first_dirty: int
    first_uncleanable: int
    aborted: Sequence[AbortedTxn]
    now_ms: int
    delete_retention_ms: int
    index_interval_bytes: int
    legacy_horizon_ms: int
    memory_bytes: int
    load_factor: float = 0.9
    window_bytes: int = 256 << 10
    bytes_per_second: float = float("inf")


class Mapped(NamedTuple):
    """The map is built. `end_offset`: where this round of cleaning ends (exclusive)."""

    end_offset: int
    keys: int
    utilization: float
    bytes_read: int
    messages_read: int


@dataclass(slots=True)
class GroupDone:
    """One new segment lies in `.cleaned` files, and what it took."""

    segment: CleanedSegment
    stats: FilterStats = field(default_factory=FilterStats)


class Pass:
    """See the module. `took(bytes)` is told of everything read and written, and may wait."""

    def __init__(
        self,
        files: FileSystem,
        request: PassRequest,
        took: Callable[[int], None],
        start: Start = background.at_once,
    ) -> None:
        self._files = files
        self._request = request
        self._took = took
        self._start = start
        self._window = max(request.window_bytes, WINDOW_BYTES_MIN)
        self._map = OffsetMap(request.memory_bytes, request.load_factor)
        self._transactions = CleanedTransactions(request.aborted)

    def build_map(self) -> Mapped:
        """Read the dirty part. Raises CorruptLog, OSError."""
        request = self._request
        touching = [entry for entry in request.aborted if entry.last_offset >= request.first_dirty]
        builder = KeyMapBuilder(
            self._map, CleanedTransactions(touching), request.first_dirty, self._window, self._took
        )
        ends = [source.base_offset for source in request.dirty[1:]] + [request.first_uncleanable]
        for source, end in zip(request.dirty, ends, strict=False):
            if not builder.read(self._files, source, end):
                break
        end_offset = max(self._map.last_offset + 1, request.first_dirty)
        stats = builder.stats
        return Mapped(
            end_offset, len(self._map), self._map.utilization, stats.bytes_read, stats.messages_read
        )

    def clean(self, group: list[Source], last_records: dict[int, LastRecord]) -> GroupDone:
        """Write a group anew; groups come in the order of the log. Raises CorruptLog, OSError."""
        request = self._request
        batch_filter = BatchFilter(
            self._map,
            self._transactions,
            FilterSettings(request.now_ms, request.delete_retention_ms, self._map.last_offset + 1),
            last_records,
        )
        writer = SegmentWriter(
            self._files, request.directory, group[0].base_offset, request.index_interval_bytes, self._took,
            self._start,
        )  # fmt: skip
        segment = rewrite(
            self._files, group, writer, batch_filter, self._window, self._took, request.legacy_horizon_ms
        )
        return GroupDone(segment, batch_filter.stats)


class _Worker:
    """What a worker process keeps between calls."""

    current: Pass | None = None


def begin(request: PassRequest) -> Mapped:
    """In a worker: start a pass, dropping one that was left."""
    background.lower_priority()
    _Worker.current = None
    throttle = Throttle(request.bytes_per_second, background.monotonic())

    def took(size: int) -> None:
        wait = throttle.took(size, background.monotonic())
        if wait > 0:
            background.pause(wait)

    current = Pass(OsFileSystem(), request, took, background.start)
    mapped = current.build_map()
    _Worker.current = current
    return mapped


def clean_group(group: list[Source], last_records: dict[int, LastRecord]) -> GroupDone:
    """In the worker that began the pass: write one group anew. RuntimeError if the worker is another one."""
    if _Worker.current is None:
        raise RuntimeError("this worker has no pass to go on with")
    return _Worker.current.clean(group, last_records)


def end() -> None:
    """In a worker: give up the memory of the pass."""
    _Worker.current = None

"""The first half of a pass: the dirty part of a log is read and the newest offset of each key noted.

Markers and aborted batches are passed over. Where the map runs full the pass ends at the last record taken,
which may lie inside a batch, and the next one goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runtime.files import FileSystem
from storage.cleaner.batch_filter import SectionTooLarge, legacy_list, table_of
from storage.cleaner.grouping import Source
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.reading import windows
from storage.cleaner.record_layout import TableReader
from storage.cleaner.transactions import CleanedTransactions
from storage.scan import BatchFacts


@dataclass(slots=True)
class MapStats:
    bytes_read: int = 0
    messages_read: int = 0


class KeyMapBuilder:
    """See the module. `took(bytes)` is called for what was read and may wait."""

    def __init__(
        self,
        key_map: OffsetMap,
        transactions: CleanedTransactions,
        start_offset: int,
        window_bytes: int,
        took: Callable[[int], None],
    ) -> None:
        self._map = key_map
        self._transactions = transactions
        self._start = start_offset
        self._window_bytes = window_bytes
        self._took = took
        self._reader = TableReader()
        self.stats = MapStats()

    def read(self, files: FileSystem, source: Source, next_base: int) -> bool:
        """Take a segment in that ends before `next_base`; False if the map is full. Raises CorruptLog."""
        handle = files.open(source.path)
        try:
            for data, found in windows(handle, 0, source.size, self._window_bytes):
                self._took(len(data))
                self.stats.bytes_read += len(data)
                first, take = found[0].position, self._take
                for facts in found:
                    if not take(data, facts.position - first, facts):
                        return False
        finally:
            handle.close()
        self._raise_last(next_base - 1)  # offsets that are missing at the end belong to nobody
        return True

    def _take(self, window: bytes, at: int, facts: BatchFacts) -> bool:
        key_map, last = self._map, facts.last_offset
        self.stats.messages_read += facts.record_count
        if facts.control:
            self._transactions.sees_useless_marker(facts, memoryview(window)[at : at + facts.size])
        elif not self._transactions.sees_aborted(facts) and last >= self._start:
            keys, offsets, longest = self._keys(window, at, facts)
            taken = key_map.put(keys, offsets, longest) if keys else 0
            if taken < len(keys):
                if taken:
                    self._raise_last(offsets[taken - 1])
                return False
        if last >= self._start and last > key_map.last_offset:
            key_map.last_offset = last
        return True

    def _keys(self, window: bytes, at: int, facts: BatchFacts) -> tuple[list[bytes], Sequence[int], int]:
        """Keys and offsets of the records from the start offset on that have a key; the longest key."""
        start = self._start
        if facts.magic < 2:
            batch = memoryview(window)[at : at + facts.size]
            some = [r for r in legacy_list(batch, facts) if r.key is not None and r.offset >= start]
            keys = [r.key or b"" for r in some]
            return keys, [r.offset for r in some], max(map(len, keys), default=0)
        if not facts.record_count:
            return [], [], 0
        try:
            table = table_of(window, at, facts, self._reader)
        except SectionTooLarge:
            self._map.has_exceptions = True
            return [], [], 0
        odd_offsets = table.deltas is not None and facts.last_offset - facts.base_offset + 1 == table.count
        if table.null_keys or table.null_values or odd_offsets:
            self._map.has_exceptions = True
        offsets = table.offsets(facts.base_offset)
        if facts.base_offset >= start and not table.null_keys:
            return table.keys, offsets, table.longest_key
        no_key = dict.fromkeys(table.null_keys)
        rows = [row for row, offset in enumerate(offsets) if offset >= start and row not in no_key]
        return [table.keys[row] for row in rows], [offsets[row] for row in rows], table.longest_key

    def _raise_last(self, offset: int) -> None:
        if offset > self._map.last_offset:
            self._map.last_offset = offset

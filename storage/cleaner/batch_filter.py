"""What becomes of one batch: it stays as it is, is written anew with fewer records, is emptied, or goes.

A record stays if the map knows no newer one with its key. Tombstones and markers go in two steps: the pass
that meets one for the first time writes the batch anew with a delete horizon (now + delete.retention.ms) in
place of its base timestamp, and a pass after that time drops it. The last batch of each active producer and
the last batch of the round stay even with no records, as bare headers: they carry the producer's sequence and
the end of the log.

A batch written anew keeps base offset, last offset, producer and codec; its records keep offsets and
timestamps. Batches of magic 0 and 1 have neither producers nor horizons: their tombstones go by the age of
the segment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from struct import Struct
from typing import Literal, TypeAlias

from protocol.errors import InvalidRecords
from protocol.records import compression
from protocol.records.batch import (
    CODEC_MASK,
    COUNT_AT,
    HEADER_SIZE,
    LENGTH_AT,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_AT,
    Record,
    records,
    wrap64,
)
from protocol.records.builder import append_record, stamp_crc, wrap_section
from protocol.records.legacy import build_message_set, legacy_records
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.record_layout import TableReader
from storage.cleaner.record_table import BadSection, RecordTable
from storage.cleaner.transactions import CleanedTransactions
from storage.errors import CorruptLog
from storage.log_config import FOREVER
from storage.scan import BatchFacts

HORIZON_BIT = 0x40
_INT, _LONG = Struct(">i"), Struct(">q")
PLAIN_BYTES_MAX = 64 << 20  # a batch that grows beyond it when decompressed is left as it is

Fate: TypeAlias = Literal["keep", "drop"] | bytearray


@dataclass(slots=True)
class LastRecord:
    """The newest thing an active producer left in the log: its last data offset, or only a marker (-1)."""

    last_data_offset: int
    producer_epoch: int


@dataclass(slots=True)
class FilterStats:
    """Counts of one pass."""

    messages_read: int = 0
    messages_kept: int = 0
    invalid_messages: int = 0  # without a key
    left_whole: int = 0  # batches too large to take apart


@dataclass(slots=True)
class FilterSettings:
    """What holds for a whole pass. Times in ms."""

    now_ms: int
    delete_retention_ms: int
    round_end: int  # the offset at which this round of cleaning ends; its last batch stays


@dataclass(slots=True)
class BatchFilter:
    """See the module. `last_records`: by producer id."""

    map: OffsetMap
    transactions: CleanedTransactions
    settings: FilterSettings
    last_records: dict[int, LastRecord]
    keep_legacy_tombstones: bool = True
    stats: FilterStats = field(default_factory=FilterStats)
    reader: TableReader = field(default_factory=TableReader)

    def decide(self, window: bytes, at: int, facts: BatchFacts) -> Fate:
        """The fate of the batch at `at` of the window. Raises CorruptLog."""
        if facts.magic < 2:
            return self._decide_legacy(memoryview(window)[at : at + facts.size], facts)
        if facts.control:
            return self._decide_control(memoryview(window)[at : at + facts.size], facts)
        self.stats.messages_read += facts.record_count
        if self.transactions.sees_aborted(facts):
            return self._emptied(facts)
        return self._decide_data(window, at, facts)

    # --- data -----------------------------------------------------------------------------------------------

    def _decide_data(self, window: bytes, at: int, facts: BatchFacts) -> Fate:
        count = facts.record_count
        if not count:
            return self._emptied(facts)
        if facts.base_offset > self.map.last_offset:
            self.stats.messages_kept += count
            return "keep"
        marks = self._marks(facts)
        if marks is not None and not self.map.has_exceptions:
            newest = marks.count(1)
            if newest == count:
                self.stats.messages_kept += count
                return "keep"
            if not newest:
                return self._emptied(facts)
        try:
            table = table_of(window, at, facts, self.reader, with_keys=marks is None)
            if marks is not None and table.deltas is not None:  # no client should write such offsets
                table, marks = table_of(window, at, facts, self.reader), None
        except SectionTooLarge:
            self.stats.messages_kept += count
            self.stats.left_whole += 1
            return "keep"
        rows = self._kept_rows(table, facts, marks)
        if not rows:
            return self._emptied(facts)
        self.stats.messages_kept += len(rows)
        horizon = bool(facts.attributes & HORIZON_BIT)
        new_horizon = False
        if not horizon and table.null_values:
            kept = rows if len(rows) == count else frozenset(rows)
            new_horizon = any(row in kept for row in table.null_values)
        if new_horizon:
            return self._with_horizon(table, rows, facts)
        if len(rows) == count:
            return "keep"
        return _with_rows(window, at, table, rows, facts)

    def _marks(self, facts: BatchFacts) -> bytearray | None:
        """1 for each record that is the newest of its key; None where its key has to be looked up.

        That is so in the part that was clean before, and where offsets are missing in the batch.
        """
        count = facts.record_count
        if facts.last_offset - facts.base_offset + 1 != count:
            return None
        return self.map.newest_of(facts.base_offset, count)

    def _kept_rows(self, table: RecordTable, facts: BatchFacts, marks: bytearray | None) -> range | list[int]:
        count, newest = facts.record_count, self.map.last_offset
        offsets = table.offsets(facts.base_offset)
        rows: range | list[int]
        if marks is not None:
            rows = range(count) if marks.count(1) == count else list(compress(range(count), marks))
        else:
            found = self.map.get(table.keys, table.longest_key)
            if found.count(None) == count or found == list(offsets):
                rows = range(count)
            else:
                rows = [
                    row
                    for row, (at, offset) in enumerate(zip(found, offsets, strict=True))
                    if at is None or offset >= at or offset > newest
                ]
        out: list[int] = []
        if table.null_keys:
            out += [row for row in table.null_keys if offsets[row] <= newest]
            self.stats.invalid_messages += len(out)
        horizon = facts.base_timestamp if facts.attributes & HORIZON_BIT else FOREVER
        if table.null_values and horizon <= self.settings.now_ms:
            out += [row for row in table.null_values if offsets[row] <= newest]
        if not out:
            return rows
        gone = dict.fromkeys(out)
        return [row for row in rows if row not in gone]

    def _with_horizon(self, table: RecordTable, rows: range | list[int], facts: BatchFacts) -> bytearray:
        """The base timestamp becomes the horizon, so the time delta of every record is another one."""
        base = self.settings.now_ms + self.settings.delete_retention_ms
        by_append_time = facts.attributes & LOG_APPEND_TIME_BIT
        offsets = table.offsets(facts.base_offset)
        wanted = dict.fromkeys(offsets[row] for row in rows)
        plain = _wrapped(
            table.cut(range(table.count)), facts, facts.attributes & ~CODEC_MASK, facts.record_count,
            facts.max_timestamp,
        )  # fmt: skip
        out = bytearray()
        greatest = -1
        for record in records(plain):
            if record.offset in wanted:
                greatest = max(greatest, record.timestamp)
                append_record(out, record, record.timestamp - base, record.offset - facts.base_offset)
        return _wrapped(
            compression.compress(facts.attributes & CODEC_MASK, out),
            facts, facts.attributes | HORIZON_BIT, len(rows),
            facts.max_timestamp if by_append_time else greatest, base_timestamp=base,
        )  # fmt: skip

    # --- markers --------------------------------------------------------------------------------------------

    def _decide_control(self, batch: memoryview, facts: BatchFacts) -> Fate:
        self.stats.messages_read += facts.record_count
        useless = self.transactions.sees_useless_marker(facts, batch)
        if not facts.record_count:
            return self._emptied(facts)
        horizon = bool(facts.attributes & HORIZON_BIT)
        if useless and horizon and facts.base_timestamp <= self.settings.now_ms:
            return self._emptied(facts)
        self.stats.messages_kept += facts.record_count
        if not useless or horizon:
            return "keep"
        base = self.settings.now_ms + self.settings.delete_retention_ms
        section = bytearray()
        for record in records(batch):
            append_record(section, record, record.timestamp - base, record.offset - facts.base_offset)
        attributes = facts.attributes | HORIZON_BIT
        return _wrapped(
            section, facts, attributes, facts.record_count, facts.max_timestamp, base_timestamp=base
        )

    # --- batches without records ----------------------------------------------------------------------------

    def _emptied(self, facts: BatchFacts) -> Fate:
        """A batch of which no record stays."""
        if not self._is_needed(facts):
            return "drop"
        if not facts.record_count:
            return "keep"
        attributes = facts.attributes & ~(CODEC_MASK | HORIZON_BIT)
        return _wrapped(b"", facts, attributes, 0, facts.max_timestamp, base_timestamp=-1)

    def _is_needed(self, facts: BatchFacts) -> bool:
        if facts.last_offset + 1 == self.settings.round_end:
            return True
        last = self.last_records.get(facts.producer_id) if facts.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return facts.last_offset == last.last_data_offset
        return facts.control and facts.producer_epoch == last.producer_epoch

    # --- old formats ----------------------------------------------------------------------------------------

    def _decide_legacy(self, batch: memoryview, facts: BatchFacts) -> Fate:
        found = legacy_list(batch, facts)
        self.stats.messages_read += len(found)
        kept = [record for record in found if self._keeps_legacy(record)]
        self.stats.messages_kept += len(kept)
        if len(kept) == len(found):
            return "keep"
        if not kept:
            return "drop"
        by_append_time = facts.magic == 1 and facts.attributes & LOG_APPEND_TIME_BIT
        return build_message_set(
            kept, facts.magic, facts.attributes & CODEC_MASK, facts.max_timestamp if by_append_time else None
        )

    def _keeps_legacy(self, record: Record) -> bool:
        if record.offset > self.map.last_offset:
            return True
        if record.key is None:
            self.stats.invalid_messages += 1
            return False
        at = self.map.get((record.key,), len(record.key))[0]
        newest = at is None or record.offset >= at
        return newest and (record.value is not None or self.keep_legacy_tombstones)


class SectionTooLarge(Exception):
    """The records of a batch take more memory than the cleaner gives them."""


def table_of(
    window: bytes, at: int, facts: BatchFacts, reader: TableReader, *, with_keys: bool = True
) -> RecordTable:
    """The records of the batch at `at` of the window, decompressed. Raises SectionTooLarge, CorruptLog.

    `with_keys` False: the keys may be left out.
    """
    start, end = at + HEADER_SIZE, at + facts.size
    codec = facts.attributes & CODEC_MASK
    try:
        if codec:
            window = compression.decompress(codec, memoryview(window)[start:end], PLAIN_BYTES_MAX)
            start, end = 0, len(window)
        return reader.read(window, start, end, facts.record_count, with_keys=with_keys)
    except InvalidRecords as error:
        if "holds more than" in str(error):
            raise SectionTooLarge from error
        raise CorruptLog(str(error), facts.position) from error
    except BadSection as error:
        raise CorruptLog(str(error), facts.position) from error


def legacy_list(batch: memoryview, facts: BatchFacts) -> list[Record]:
    """The records of an entry of magic 0 or 1. Raises CorruptLog."""
    try:
        return list(legacy_records(batch, 0, facts.size, PLAIN_BYTES_MAX))
    except InvalidRecords as error:
        raise CorruptLog(str(error), facts.position) from error


def _with_rows(
    window: bytes, at: int, table: RecordTable, rows: range | list[int], facts: BatchFacts
) -> bytearray:
    """Fewer records, each of them byte for byte, behind the header that the batch at `at` has."""
    kept = table.cut(rows)
    codec = facts.attributes & CODEC_MASK
    if codec:
        kept = compression.compress(codec, kept)
    out = bytearray(window[at : at + HEADER_SIZE])
    out += kept
    size = len(out)
    _INT.pack_into(out, LENGTH_AT, size - LOG_OVERHEAD)
    _INT.pack_into(out, COUNT_AT, len(rows))
    if not facts.attributes & LOG_APPEND_TIME_BIT:
        _LONG.pack_into(out, MAX_TIMESTAMP_AT, wrap64(facts.base_timestamp + table.latest(rows)))
    stamp_crc(out, 0, size)
    return out


def _wrapped(
    section: bytes | bytearray,
    facts: BatchFacts,
    attributes: int,
    count: int,
    max_timestamp: int,
    base_timestamp: int | None = None,
) -> bytearray:
    return wrap_section(
        section,
        attributes=attributes,
        last_offset_delta=facts.last_offset - facts.base_offset,
        base_timestamp=facts.base_timestamp if base_timestamp is None else base_timestamp,
        max_timestamp=max_timestamp,
        count=count,
        base_offset=facts.base_offset,
        leader_epoch=facts.leader_epoch,
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        base_sequence=facts.base_sequence,
    )

"""What is in a segment's files, as facts: the core of `ottla dump-log`.

Reads files and judges them; printing is the tool's. The judgements are those of Kafka's own dump tool: an
offset index entry must point at a batch that ends at its offset; a time index entry must name the last offset
of a batch whose greatest record timestamp is the entry's, and timestamps must rise; a sparse tail of zeros
ends an index; bytes behind the last whole batch are invalid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from protocol.records.batch import Record, records
from protocol.records.legacy import legacy_records
from runtime.files import FileHandle, FileSystem
from storage import names, scan
from storage.errors import CorruptLog
from storage.offset_index import OffsetIndex
from storage.producers.entry import ProducerEntry
from storage.producers.snapshot import decode_snapshot
from storage.time_index import TimeIndex
from storage.txn_index import ENTRY as TXN_ENTRY


class DumpedBatch(NamedTuple):
    """A batch of a log file; `valid` says whether its CRC is right."""

    facts: scan.BatchFacts
    valid: bool
    data: bytes

    def records(self) -> Iterator[Record]:
        """Its records, decompressed. Raises InvalidRecords where they cannot be read."""
        if self.facts.magic == 2:
            return records(self.data)
        return legacy_records(self.data)


class LogDump:
    """Walks over a log file. After the walk `valid_bytes` and `size` tell whether something follows."""

    def __init__(self, files: FileSystem, path: str, max_bytes: int | None = None) -> None:
        self._handle = files.open(path)
        self.start_offset = names.offset_of(path.rpartition("/")[2])
        self.size = self._handle.size()
        self.valid_bytes = 0
        self._limit = self.size if max_bytes is None else min(max_bytes, self.size)

    def batches(self) -> Iterator[DumpedBatch]:
        """Every whole batch in order. Raises CorruptLog at bytes that cannot be one."""
        for facts in scan.scan(self._handle, 0, self._limit):
            data = self._handle.read_at(facts.position, facts.size)
            self.valid_bytes = facts.position + facts.size
            try:
                scan.check_crc(memoryview(data), facts)
                yield DumpedBatch(facts, True, data)
            except CorruptLog:
                yield DumpedBatch(facts, False, data)

    def close(self) -> None:
        self._handle.close()


@dataclass(slots=True)
class IndexDump:
    """An index file. `entries` are (offset, position) or (timestamp, offset); the rest is what is wrong.

    `problem`: what the sanity check of the file as a whole says.
    `mismatches`: index offset and the last offset of the batch at its position. `wrong_timestamps`: index
    timestamp and the greatest of the batch. `out_of_order`: index timestamp and the one before.
    `not_found`: offset of an entry and the last offset of the batch found for it (-1 if none).
    """

    entries: list[tuple[int, int]] = field(default_factory=list)
    empty_file: bool = False
    problem: str | None = None
    mismatches: list[tuple[int, int]] = field(default_factory=list)
    wrong_timestamps: list[tuple[int, int]] = field(default_factory=list)
    out_of_order: list[tuple[int, int]] = field(default_factory=list)
    not_found: list[tuple[int, int]] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether the entries agree with the log."""
        return not (self.mismatches or self.wrong_timestamps or self.out_of_order or self.not_found)


def dump_offset_index(files: FileSystem, path: str) -> IndexDump:
    """Read an `.index` and compare it with the `.log` beside it."""
    stem = path.removesuffix(names.OFFSET_INDEX)
    base = names.offset_of(path.rpartition("/")[2])
    dump = IndexDump(empty_file=files.size(path) == 0)
    index = OffsetIndex(files, path, base, repair=False)
    log = files.open(stem + names.LOG)
    try:
        dump.problem = index.problem()
        for number in range(index.entries):
            offset, position = index.entry(number)
            if number and offset == base:
                break
            dump.entries.append((offset, position))
            batch = next(scan.scan(log, position, log.size(), scan.LOCATE_WINDOW), None)
            if batch is None or batch.last_offset != offset:
                dump.mismatches.append((offset, -1 if batch is None else batch.last_offset))
    finally:
        index.close()
        log.close()
    return dump


def dump_time_index(files: FileSystem, path: str) -> IndexDump:
    """Read a `.timeindex` and compare it with the `.index` and `.log` beside it."""
    stem = path.removesuffix(names.TIME_INDEX)
    base = names.offset_of(path.rpartition("/")[2])
    dump = IndexDump(empty_file=files.size(path) == 0)
    times = TimeIndex(files, path, base, repair=False)
    offsets = OffsetIndex(files, stem + names.OFFSET_INDEX, base, repair=False)
    log = files.open(stem + names.LOG)
    previous = -1
    try:
        dump.problem = times.problem()
        for number in range(times.entries):
            timestamp, offset = times.entry(number)
            if number and offset == base and timestamp == 0:
                break
            dump.entries.append((timestamp, offset))
            batch = _batch_ending_at(log, offsets, offset)
            if batch is None or batch.last_offset != offset:
                dump.not_found.append((offset, -1 if batch is None else batch.last_offset))
            else:
                greatest = max(record.timestamp for record in _batch_at(log, batch).records())
                if greatest != timestamp:
                    dump.wrong_timestamps.append((timestamp, greatest))
            if timestamp <= previous:
                dump.out_of_order.append((timestamp, previous))
            previous = timestamp
    finally:
        times.close()
        offsets.close()
        log.close()
    return dump


def _batch_ending_at(log: FileHandle, offsets: OffsetIndex, offset: int) -> scan.BatchFacts | None:
    """The first batch that reaches `offset`."""
    for facts in scan.scan(log, offsets.lookup(offset)[1], log.size(), scan.LOCATE_WINDOW):
        if facts.last_offset >= offset:
            return facts
    return None


def _batch_at(log: FileHandle, facts: scan.BatchFacts) -> DumpedBatch:
    return DumpedBatch(facts, True, log.read_at(facts.position, facts.size))


def dump_snapshot(files: FileSystem, path: str) -> list[ProducerEntry]:
    """The producers of a `.snapshot` file. Raises CorruptCheckpoint."""
    return decode_snapshot(files.read_bytes(path))


class AbortedTransaction(NamedTuple):
    """An entry of a `.txnindex`."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def dump_txn_index(files: FileSystem, path: str) -> list[AbortedTransaction]:
    """The aborted transactions of a `.txnindex`; a cut entry at the end is left out."""
    data = files.read_bytes(path)
    whole = len(data) // TXN_ENTRY.size * TXN_ENTRY.size
    return [AbortedTransaction(*entry) for entry in TXN_ENTRY.iter_unpack(data[:whole])]

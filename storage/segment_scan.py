"""Reading one log file from end to end: is every batch whole, and what belongs into the files beside it?

This is the part of recovery that costs time, so it changes nothing and needs nothing but the file: worker
processes do it for many segments at once, and what they hand back is small. Of the producers' batches only
those are kept that can change what a reader of all of them knows at the end: markers, the first batch of each
transaction, and the last five of each producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from runtime.files import FileHandle, FileSystem
from runtime.os_files import OsFileSystem
from storage import scan
from storage.errors import CorruptLog
from storage.offset_index import RELATIVE_MAX, OffsetIndex
from storage.producers.entry import BATCHES_MAX
from storage.scan import BatchFacts
from storage.time_index import TimeIndex


class ScanRequest(NamedTuple):
    """A log file to read. `interval` is index.interval.bytes."""

    path: str
    base_offset: int
    size: int
    interval: int


class ProducerBatch(NamedTuple):
    """A batch that the producers' state has to follow; `marker` is the whole batch if it is a control one."""

    facts: BatchFacts
    marker: bytes


@dataclass(slots=True)
class ScannedSegment:
    """What a log file holds up to its first bad batch. `end` is a position, `next_offset` what follows.

    `overflows`: it ends before a batch that is good, but too far above the base offset for an index.
    """

    size: int
    next_offset: int
    end: int = 0
    reason: str = ""  # why the rest is no log; empty if there is no rest
    overflows: bool = False
    first_timestamp: int = -1
    max_timestamp: int = -1
    max_timestamp_offset: int = -1
    last_indexed_position: int = 0
    offset_entries: bytes = b""
    time_entries: bytes = b""
    epochs: list[tuple[int, int]] = field(default_factory=list)  # epoch, first offset; rising
    producers: list[ProducerBatch] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return self.end == self.size


Scanned: TypeAlias = ScannedSegment | OSError
"""What became of a request: the failure of a disk is an answer, so that one does not hide the others."""

Scans: TypeAlias = Callable[[Sequence[ScanRequest]], Iterator[Scanned]]
"""Reads the files, wherever that is done; the answers come in the order of the requests."""


def scan_log(files: FileSystem, request: ScanRequest) -> ScannedSegment:
    """Check every batch of the file and work out its indexes, epochs and producers. Raises OSError."""
    handle = files.open(request.path)
    try:
        return _scan(handle, request)
    finally:
        handle.close()


def scan_inline(files: FileSystem) -> Scans:
    """Scans made one after another where they are asked for."""

    def run(requests: Sequence[ScanRequest]) -> Iterator[Scanned]:
        for request in requests:
            yield _answer(files, request)

    return run


def scan_in_worker(requests: Sequence[ScanRequest]) -> list[Scanned]:
    """The same in a process of its own."""
    files = OsFileSystem()
    return [_answer(files, request) for request in requests]


def _answer(files: FileSystem, request: ScanRequest) -> Scanned:
    try:
        return scan_log(files, request)
    except OSError as error:
        return error


def _scan(handle: FileHandle, request: ScanRequest) -> ScannedSegment:
    base, interval = request.base_offset, request.interval
    found = ScannedSegment(request.size, base)
    offsets, times, producers = bytearray(), bytearray(), _Producers()
    pack_offset, pack_time = OffsetIndex.ENTRY.pack, TimeIndex.ENTRY.pack
    end = indexed = 0
    previous, epoch = base - 1, -1
    greatest = greatest_offset = timed = -1
    try:
        for facts in scan.verified(handle, 0, request.size):
            position, size, first, last, timestamp = facts[:5]
            if last <= previous or last - base > RELATIVE_MAX:
                found.reason = f"offset {last} after {previous}"
                found.overflows = last > previous
                break
            if end == 0:
                found.first_timestamp = timestamp
            if timestamp > greatest and facts.record_count:  # not of a batch that compaction emptied
                greatest, greatest_offset = timestamp, last
            if position - indexed > interval:
                offsets += pack_offset(last - base, position)
                indexed = position
                if greatest > timed:
                    times += pack_time(greatest, greatest_offset - base)
                    timed = greatest
            if facts.leader_epoch > epoch:
                epoch = facts.leader_epoch
                found.epochs.append((epoch, first))
            if facts.producer_id >= 0:
                producers.add(facts, handle.read_at(position, size) if facts.control else b"")
            end = position + size
            previous = last
    except CorruptLog as error:
        found.reason = str(error)
    found.end, found.next_offset = end, previous + 1
    found.max_timestamp, found.max_timestamp_offset = greatest, greatest_offset
    found.last_indexed_position = indexed
    found.offset_entries, found.time_entries = bytes(offsets), bytes(times)
    found.producers = list(producers)
    return found


class _Producers:
    """Batches with a producer, without those that later ones make irrelevant."""

    def __init__(self) -> None:
        self._kept: dict[int, ProducerBatch] = {}  # by position, which rises
        self._recent: dict[int, list[int]] = {}  # positions of the last data batches of each producer
        self._open: dict[int, None] = {}  # producers with a transaction that began here
        self._firsts: dict[int, None] = {}  # positions where one began

    def add(self, facts: BatchFacts, marker: bytes) -> None:
        position, producer = facts.position, facts.producer_id
        self._kept[position] = ProducerBatch(facts, marker)
        if marker:
            self._open.pop(producer, None)
            return
        if facts.transactional and producer not in self._open:
            self._open[producer] = self._firsts[position] = None
        recent = self._recent.setdefault(producer, [])
        recent.append(position)
        if len(recent) > BATCHES_MAX:
            oldest = recent.pop(0)
            if oldest not in self._firsts:
                del self._kept[oldest]

    def __iter__(self) -> Iterator[ProducerBatch]:
        return iter(self._kept.values())

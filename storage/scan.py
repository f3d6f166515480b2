"""Walks over the batches of a log file by their headers, without looking at records.

Knows the 61 bytes of the v2 header and the fixed part of the old v0/v1 entries, whose offset field is the
LAST offset of a compressed set. A tail shorter than a header, or a batch longer than the file, is a torn
write and ends the walk; a size that no batch can have is corruption. Reads go in windows, since a system call
for each batch costs more than its header.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from protocol.records.crc import crc32c
from runtime.files import FileHandle
from storage.errors import CorruptLog

LOCATE_WINDOW = 4096
SCAN_WINDOW = 1 << 20
PREFIX_BYTES = 17  # offset, size, leader epoch or CRC, magic
SIZE_MIN = 14
LEGACY_OVERHEAD = (26, 34)  # v0, v1: offset, size, crc, magic, attributes, [timestamp], two lengths
V2_OVERHEAD = 61
_COPY_BYTES = 4096

_PREFIX = struct.Struct(">qi")
_V2 = struct.Struct(">qiibIhiqqqhii")
_LENGTH = struct.Struct(">i")
_LOCATE = struct.Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta
_TIMESTAMP = struct.Struct(">q")
_CRC = struct.Struct(">I")
_make = tuple.__new__  # a scan makes one for each batch; the constructor takes twice as long


class BatchFacts(NamedTuple):
    """The header of one batch and where it lies. Legacy entries have -1 for what they lack."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    magic: int
    attributes: int
    leader_epoch: int
    crc: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    base_timestamp: int

    @property
    def transactional(self) -> bool:
        return self.magic == 2 and bool(self.attributes & 0x10)

    @property
    def control(self) -> bool:
        return self.magic == 2 and bool(self.attributes & 0x20)


class Located(NamedTuple):
    """A batch found by offset, and the bytes read on the way: it begins at `at` of `window`."""

    position: int
    size: int
    last_offset: int
    window: bytes
    at: int


def facts_at(data: bytes | memoryview, at: int, position: int) -> BatchFacts:
    """Read the header at `at` of `data`, which holds all of it. Raises CorruptLog."""
    base, length = _PREFIX.unpack_from(data, at)
    size, magic = length + 12, data[at + 16]
    if magic > 2 or length < SIZE_MIN or size < (V2_OVERHEAD if magic == 2 else LEGACY_OVERHEAD[magic]):
        raise CorruptLog(f"no batch has size {size} and magic {magic}", position)
    if magic == 2:
        _, _, epoch, _, crc, attributes, delta, base_ts, max_ts, producer, producer_epoch, sequence, count = (
            _V2.unpack_from(data, at)
        )
        facts = (
            position, size, base, base + delta, max_ts, 2, attributes,
            epoch, crc, producer, producer_epoch, sequence, count, base_ts,
        )  # fmt: skip
        return _make(BatchFacts, facts)
    timestamp = _TIMESTAMP.unpack_from(data, at + 18)[0] if magic == 1 else -1
    crc = _CRC.unpack_from(data, at + 12)[0]
    return BatchFacts(
        position, size, base, base, timestamp, magic, data[at + 17], -1, crc, -1, -1, -1, 1, timestamp
    )


def scan(handle: FileHandle, position: int, end: int, window: int = SCAN_WINDOW) -> Iterator[BatchFacts]:
    """Headers of the batches from `position` on that lie wholly before `end`. Raises CorruptLog."""
    data, first = b"", position
    while position + PREFIX_BYTES < end:
        at = position - first
        if at + V2_OVERHEAD > len(data):
            first, at = position, 0
            data = handle.read_at(position, min(window, end - position))
            if len(data) < min(V2_OVERHEAD, end - position):
                return
        if len(data) - at < V2_OVERHEAD:  # at the end of the file: only a legacy entry is this short
            data = data[at:].ljust(V2_OVERHEAD, b"\0")
            first, at = position, 0
        size = _PREFIX.unpack_from(data, at)[1] + 12
        if size < SIZE_MIN + 12:
            raise CorruptLog(f"no batch has size {size}", position)
        if position + size > end:
            return
        yield facts_at(data, at, position)
        position += size


def verified(handle: FileHandle, position: int, end: int) -> Iterator[BatchFacts]:
    """Like `scan`, and each batch's CRC is checked; raises CorruptLog at the first bad or torn one.

    A batch larger than the window is read whole: what the log holds once went through memory as well.
    """
    data, first = b"", position
    while position < end:
        at = position - first
        if at + V2_OVERHEAD > len(data) and len(data) - at < end - position:
            first, at = position, 0
            data = handle.read_at(position, min(SCAN_WINDOW, end - position))
        if len(data) - at < PREFIX_BYTES:
            raise CorruptLog(f"{len(data) - at} bytes are no batch", position)
        size = _PREFIX.unpack_from(data, at)[1] + 12
        if size < SIZE_MIN + 12 or position + size > end:
            raise CorruptLog(f"a batch of {size} bytes with {end - position} left in the file", position)
        if at + size > len(data):
            first, at = position, 0
            data = handle.read_at(position, max(size, min(SCAN_WINDOW, end - position)))
            if len(data) < size:
                raise CorruptLog(f"a batch of {size} bytes with {len(data)} left in the file", position)
        facts = facts_at(data, at, position)
        if facts.magic == 2 and size < _COPY_BYTES:  # copying so few bytes costs less than a view of them
            if crc32c(data[at + 21 : at + size]) != facts.crc:
                raise CorruptLog("wrong CRC", position)
        else:
            check_crc(memoryview(data)[at : at + size], facts)
        yield facts
        position += size


def check_crc(batch: memoryview, facts: BatchFacts) -> None:
    """Raises CorruptLog if the bytes do not have the CRC of their header."""
    actual = crc32c(batch[21:]) if facts.magic == 2 else zlib.crc32(batch[16:])
    if actual != facts.crc:
        raise CorruptLog(f"CRC {actual:08x} instead of {facts.crc:08x}", facts.position)


def holds(handle: FileHandle, position: int, end: int, offset: int) -> Located | None:
    """The batch at `position`, if it is whole and `offset` lies in it."""
    window = handle.read_at(position, min(V2_OVERHEAD, end - position))
    if len(window) < V2_OVERHEAD:
        return None
    base, length, magic, delta = _LOCATE.unpack_from(window)
    if magic != 2 or length < SIZE_MIN or position + length + 12 > end:
        return None
    return Located(position, length + 12, base + delta, window, 0) if base <= offset <= base + delta else None


def locate(handle: FileHandle, position: int, end: int, offset: int, extra: int = 0) -> Located | None:
    """The first batch from `position` on that ends at or above `offset`; None if there is none before `end`.

    `position` must be the start of a batch. `extra` more bytes are read than a search needs, for a caller
    that wants what follows. Raises CorruptLog.
    """
    window = handle.read_at(position, min(LOCATE_WINDOW + extra, end - position))
    at, unpack, stop = 0, _LOCATE.unpack_from, len(window) - _LOCATE.size
    while True:
        if at > stop:
            position += at
            if position + PREFIX_BYTES >= end:
                return None
            window, at = handle.read_at(position, min(LOCATE_WINDOW + extra, end - position)), 0
            stop = len(window) - _LOCATE.size
            if stop < 0:
                return None
        last, length, magic, delta = unpack(window, at)
        if length < SIZE_MIN:
            raise CorruptLog(f"no batch has size {length + 12}", position + at)
        if magic == 2:
            last += delta
        if last >= offset:
            if position + at + length + 12 > end:
                return None
            return Located(position + at, length + 12, last, window, at)
        at += length + 12


def whole_batches(data: bytes, at: int, end: int) -> int:
    """Where the last whole batch of `data[at:end]` ends."""
    while end - at >= PREFIX_BYTES:
        length: int = _LENGTH.unpack_from(data, at + 8)[0]
        if length < SIZE_MIN or at + length + 12 > end:
            break
        at += length + 12
    return at

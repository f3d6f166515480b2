"""The batches of a log as an acquisition sees them: where they begin and end, and where their bytes lie.

Only headers are read. How far is bounded by offsets, because nothing is acquired more than a request's
records beyond the end of the window; so a fetch of megabytes of tiny batches reads some thousand headers at
most. Legacy entries tell the offset of their last record only: they are taken to begin after the batch
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from protocol.records.batch import HEADER_SIZE, records
from runtime.files import Buffer, FileRegion
from storage.read import LogSlice, SliceData
from storage.scan import BatchFacts, facts_at, scan

SCAN_WINDOW = 16 << 10
_LEGACY_PADDING = bytes(HEADER_SIZE)
_ABORT = b"\0\0\0\0"  # control record key: version 0, type 0


class LogBatch(NamedTuple):
    """One batch of a read. `position` counts from the start of the read. `producer_id` is -1 for plain data;
    `abort_marker`: it ends an aborted transaction.
    """

    first: int
    last: int
    position: int
    size: int
    producer_id: int = -1
    transactional: bool = False
    abort_marker: bool = False


def log_batches(found: LogSlice, fetch_offset: int, upto: int, find_markers: bool = False) -> list[LogBatch]:
    """The batches of `found` that begin at or below offset `upto`, in order.

    `find_markers`: look into control batches for the ends of aborted transactions.
    """
    result: list[LogBatch] = []
    expected = fetch_offset
    if not found.length:
        return result
    for facts, bytes_of in _facts(found.data):
        first = facts.base_offset if facts.magic == 2 else min(facts.base_offset, expected)
        if first > upto:
            break
        marker = find_markers and facts.control and _is_abort(bytes_of, facts)
        result.append(
            LogBatch(
                first,
                facts.last_offset,
                facts.position,
                facts.size,
                facts.producer_id,
                facts.transactional,
                marker,
            )
        )
        expected = facts.last_offset + 1
    return result


def cut_to(data: SliceData, batches: Sequence[LogBatch], first: int, last: int) -> tuple[SliceData, int]:
    """The bytes of the batches from the one with offset `first` to the one with `last`, and their length."""
    begin = end = -1
    for batch in batches:
        if batch.first > last:
            break
        if begin < 0 or batch.first <= first:
            begin = batch.position
        end = batch.position + batch.size
    if begin < 0:
        return b"", 0
    return part_of(data, begin, end), end - begin


def part_of(data: SliceData, begin: int, end: int) -> SliceData:
    """Bytes `begin` to `end` of a read, without a copy where there is a choice."""
    if isinstance(data, FileRegion):
        return FileRegion(data.handle, data.position + begin, end - begin)
    if isinstance(data, bytes):
        return data[begin:end]
    parts: list[Buffer] = []
    at = 0
    for part in data:
        size = len(part)
        if at < end and at + size > begin:
            whole = begin <= at and at + size <= end
            parts.append(part if whole else part[max(begin - at, 0) : min(end - at, size)])
        at += size
    return parts


def _facts(data: SliceData) -> Iterator[tuple[BatchFacts, SliceData]]:
    """Headers, with positions from the start of the read, and the data they were found in."""
    if isinstance(data, FileRegion):
        start = data.position
        for facts in scan(data.handle, start, start + data.length, SCAN_WINDOW):
            yield facts._replace(position=facts.position - start), data
        return
    position = 0
    for part in (data,) if isinstance(data, bytes) else data:
        at, end = 0, len(part)
        view = part if isinstance(part, bytes) else memoryview(part)
        while end - at >= 26:
            if end - at < HEADER_SIZE:  # a legacy entry may be shorter than a header
                facts = facts_at(bytes(view[at:end]) + _LEGACY_PADDING, 0, position)
            else:
                facts = facts_at(view, at, position)
            if at + facts.size > end:
                return
            yield facts, data
            at += facts.size
            position += facts.size


def _is_abort(data: SliceData, facts: BatchFacts) -> bool:
    piece = part_of(data, facts.position, facts.position + facts.size)
    if isinstance(piece, FileRegion):
        piece = piece.read()
    raw = piece if isinstance(piece, bytes) else b"".join(piece)
    record = next(records(raw), None)
    return record is not None and record.key is not None and bytes(record.key[:4]) == _ABORT

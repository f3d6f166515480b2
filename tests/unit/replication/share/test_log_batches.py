"""Batches of a read, wherever their bytes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker
from replication.share.log_batches import cut_to, log_batches, part_of
from runtime.files import FileRegion
from runtime.os_files import OsFileSystem
from storage.read import LogSlice, SliceData


def batch(base_offset: int, count: int, **fields: int) -> bytes:
    records = [Record(base_offset + number, 1000, None, b"x" * 20) for number in range(count)]
    return bytes(build_batch(records, base_offset=base_offset, **fields))


BATCHES = [batch(0, 3), batch(3, 1), batch(10, 4)]
BYTES = b"".join(BATCHES)


@pytest.fixture(params=["bytes", "list", "file"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> SliceData:
    if request.param == "bytes":
        return BYTES
    if request.param == "list":
        return [BATCHES[0], bytearray(BATCHES[1]), memoryview(BATCHES[2])]
    handle = OsFileSystem().open(str(tmp_path / "segment"), create=True)
    handle.append([b"\0" * 100, BYTES])
    return FileRegion(handle, 100, len(BYTES))


def read(data: SliceData) -> LogSlice:
    return LogSlice(data, len(BYTES), 0, 0)


def content(data: SliceData) -> bytes:
    if isinstance(data, FileRegion):
        return data.read()
    return data if isinstance(data, bytes) else b"".join(data)


def test_where_batches_begin_and_end(data: SliceData) -> None:
    found = log_batches(read(data), 0, 100)
    assert [(each.first, each.last) for each in found] == [(0, 2), (3, 3), (10, 13)]
    assert [BYTES[each.position : each.position + each.size] for each in found] == BATCHES
    assert {(each.producer_id, each.transactional) for each in found} == {(-1, False)}


def test_no_further_than_needed(data: SliceData) -> None:
    assert [each.first for each in log_batches(read(data), 0, 9)] == [0, 3]
    assert log_batches(LogSlice(b"", 0, 0, 0), 0, 9) == []


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 13, BYTES),
        (1, 2, BATCHES[0]),
        (3, 5, BATCHES[1]),
        (2, 10, BYTES),
        (3, 13, BYTES[len(BATCHES[0]) :]),
    ],
)
def test_the_bytes_of_what_was_acquired(data: SliceData, first: int, last: int, expected: bytes) -> None:
    cut, length = cut_to(data, log_batches(read(data), 0, 100), first, last)
    assert (content(cut), length) == (expected, len(expected))


def test_any_part(data: SliceData) -> None:
    for begin, end in [(0, 5), (len(BATCHES[0]) - 2, len(BATCHES[0]) + 3), (1, len(BYTES))]:
        assert content(part_of(data, begin, end)) == BYTES[begin:end]


def test_nothing_acquired_has_no_bytes() -> None:
    assert cut_to(BYTES, [], 0, 5) == (b"", 0)


def test_transactions_and_their_ends() -> None:
    begun = batch(0, 2, producer_id=7, producer_epoch=1, base_sequence=0, transactional=True)
    ends = [
        bytes(build_end_marker(commit, producer_id=7, producer_epoch=1, coordinator_epoch=0, timestamp=1))
        for commit in (True, False)
    ]
    raw = begun + b"".join(ends)
    found = log_batches(LogSlice(raw, len(raw), 0, 0), 0, 100, find_markers=True)
    assert [(each.producer_id, each.transactional, each.abort_marker) for each in found] == [
        (7, True, False),
        (7, True, False),
        (7, True, True),
    ]

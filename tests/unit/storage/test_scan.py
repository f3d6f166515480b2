import struct
import zlib

import pytest

from storage import scan
from storage.errors import CorruptLog
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, batch


def written(*parts: bytes):
    files = SimFileSystem()
    files.make_dirs("/p")
    handle = files.open("/p/x.log", create=True)
    handle.append(parts)
    return handle


def legacy(magic: int, offset: int, value: bytes, timestamp: int = -1) -> bytes:
    head = struct.pack(">bb", magic, 0) + (struct.pack(">q", timestamp) if magic else b"")
    body = head + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def test_headers_are_read_as_they_are():
    first = batch(
        3, base=5, leader_epoch=2, ts=[START_MS, START_MS + 9, START_MS + 1], producer=7, epoch=1, sequence=4
    )
    handle = written(first, batch(1, base=8))
    facts, second = scan.scan(handle, 0, handle.size())
    assert (facts.position, facts.size, facts.base_offset, facts.last_offset) == (0, len(first), 5, 7)
    assert (facts.leader_epoch, facts.max_timestamp, facts.record_count) == (2, START_MS + 9, 3)
    assert (facts.producer_id, facts.producer_epoch, facts.base_sequence) == (7, 1, 4)
    assert not facts.transactional
    assert not facts.control
    assert second.position == len(first)


@pytest.mark.parametrize("window", [64, 100, 1 << 20])
def test_small_windows_find_the_same(window):
    parts = [batch(1 + i % 3, base=i * 3, size=i * 7) for i in range(20)]
    handle = written(*parts)
    assert [f.size for f in scan.scan(handle, 0, handle.size(), window)] == [len(p) for p in parts]


@pytest.mark.parametrize("left", [0, 1, 16, 17, 60, 61, 80])
def test_a_torn_tail_ends_the_walk_silently(left):
    handle = written(batch(2), batch(5, base=2, size=50)[:left])
    assert [f.last_offset for f in scan.scan(handle, 0, handle.size())] == [1]


def test_zeros_are_corruption():
    handle = written(batch(1), bytes(100))
    with pytest.raises(CorruptLog) as caught:
        list(scan.scan(handle, 0, handle.size()))
    assert caught.value.position == len(batch(1))


def test_legacy_entries_are_walked_over():
    parts = [legacy(0, 0, b"a"), legacy(1, 1, b"bb", 77), legacy(1, 2, b"", 78)]
    handle = written(*parts, batch(2, base=3))
    found = list(scan.verified(handle, 0, handle.size()))
    assert [(f.magic, f.last_offset, f.max_timestamp) for f in found[:3]] == [
        (0, 0, -1),
        (1, 1, 77),
        (1, 2, 78),
    ]
    assert found[3].last_offset == 4
    assert [f.position for f in scan.scan(handle, 0, handle.size(), 64)] == [f.position for f in found]


@pytest.mark.parametrize("where", [21, 40, 61, -1])
def test_a_wrong_bit_behind_the_crc_is_found(where):
    bad = batch(3, base=2)
    bad[where] ^= 4
    handle = written(batch(2), bad, batch(1, base=5))
    walk = scan.verified(handle, 0, handle.size())
    assert next(walk).last_offset == 1
    with pytest.raises(CorruptLog):
        next(walk)


@pytest.mark.parametrize("left", [1, 12, 30, 61, 100])
def test_verification_ends_with_an_error_at_a_torn_tail(left):
    handle = written(batch(2), batch(5, base=2, size=50)[:left])
    walk = scan.verified(handle, 0, handle.size())
    assert next(walk).last_offset == 1
    with pytest.raises(CorruptLog):
        next(walk)


def test_verification_reads_batches_larger_than_its_window():
    big = batch(3, size=700_000)
    handle = written(batch(1), big, batch(1, base=4))
    assert [f.size for f in scan.verified(handle, 0, handle.size())][1] == len(big)


def test_locating_starts_at_any_batch_and_skips_gaps():
    parts = [batch(2, base=0), batch(2, base=10), batch(2, base=20, size=6000), batch(2, base=30)]
    handle = written(*parts)
    end = handle.size()
    starts = [0, len(parts[0]), len(parts[0] + parts[1]), len(parts[0] + parts[1] + parts[2])]
    wanted = {0: 0, 1: 0, 2: 1, 10: 1, 12: 2, 21: 2, 22: 3, 31: 3}
    for offset, number in wanted.items():
        found = scan.locate(handle, 0, end, offset)
        assert found is not None
        assert (found.position, found.size) == (starts[number], len(parts[number]))
        assert found.window[found.at : found.at + 8] == parts[number][:8]
    assert scan.locate(handle, 0, end, 32) is None
    assert scan.locate(handle, 0, end - 1, 30) is None
    assert scan.locate(handle, starts[2], end, 0).position == starts[2]


@pytest.mark.parametrize(("offset", "inside"), [(4, False), (5, True), (7, True), (8, False)])
def test_a_batch_is_asked_whether_it_holds_an_offset(offset, inside):
    first = batch(3, base=5)
    handle = written(first)
    found = scan.holds(handle, 0, len(first), offset)
    assert (found is not None) == inside
    if found is not None:
        assert (found.position, found.size, found.last_offset, found.at) == (0, len(first), 7, 0)
    assert scan.holds(handle, 0, len(first) - 1, offset) is None
    assert scan.holds(handle, len(first) - 10, len(first), offset) is None


def test_whole_batches_are_counted_in_a_buffer():
    data = bytes(batch(1)) + bytes(batch(1)) + bytes(batch(1))[:-1]
    one = len(batch(1))
    assert scan.whole_batches(data, 0, len(data)) == 2 * one
    assert scan.whole_batches(data, one, len(data)) == 2 * one
    assert scan.whole_batches(data, 0, one - 1) == 0

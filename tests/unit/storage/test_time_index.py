import pytest

from storage.time_index import TimeIndex
from tests.simulation.files import SimFileSystem

PATH = "/p/00000000000000000045.timeindex"
BASE = 45


def index(*entries, sealed=False):
    files = SimFileSystem()
    files.make_dirs("/p")
    made = TimeIndex(files, PATH, BASE, fresh=True)
    for timestamp, offset in entries:
        made.maybe_append(timestamp, offset)
    if sealed:
        made.unload()
    return files, made


@pytest.mark.parametrize("sealed", [False, True])
def test_lookup_finds_the_greatest_timestamp_not_above(sealed):
    _, made = index((10, 46), (20, 55), (30, 65), sealed=sealed)
    assert made.lookup(9) == (-1, BASE)
    assert made.lookup(10) == (10, 46)
    assert made.lookup(25) == (20, 55)
    assert made.lookup(99) == (30, 65)
    assert made.last == (30, 65)


def test_an_equal_entry_is_ignored_and_neither_side_may_fall():
    _, made = index((10, 46), (10, 46), (10, 50))
    assert made.entries == 1
    with pytest.raises(ValueError, match="timestamp 9"):
        made.maybe_append(9, 50)
    with pytest.raises(ValueError, match="offset 45"):
        made.maybe_append(11, 45)
    made.maybe_append(11, 46)
    assert made.entries == 2


def test_the_file_holds_twelve_bytes_an_entry():
    files, made = index((1 << 40, 50))
    made.write_out()
    assert files.read_bytes(PATH) == (1 << 40).to_bytes(8, "big") + (5).to_bytes(4, "big")
    assert TimeIndex(files, PATH, BASE).entry(0) == (1 << 40, 50)


def test_truncation_by_offset():
    _, made = index((10, 46), (20, 55), (30, 65))
    made.truncate_to(66)
    assert made.entries == 3
    made.truncate_to(55)
    assert made.entries == 1
    assert made.last == (10, 46)
    with pytest.raises(IndexError):
        made.entry(1)


def test_zeros_at_the_end_do_not_count_and_damage_is_told():
    files, made = index((10, 46), (20, 55))
    made.write_out()
    files.open(PATH).append([bytes(12 * 50)])
    assert TimeIndex(files, PATH, BASE).entries == 2
    files.open(PATH).append([b"x"])
    assert "multiple" in TimeIndex(files, PATH, BASE, repair=False).problem()
    down = (20).to_bytes(8, "big") + (1).to_bytes(4, "big") + (10).to_bytes(8, "big") + (2).to_bytes(4, "big")
    files.write_atomic(PATH, down)
    assert "below the first" in TimeIndex(files, PATH, BASE).problem()

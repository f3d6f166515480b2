import pytest

from protocol.records.batch import Record
from protocol.records.legacy import build_message_set
from storage.cleaner.reading import windows
from storage.errors import CorruptLog
from tests.simulation.files import SimFileSystem
from tests.support.logs import batch


def opened(data: bytes):
    handle = SimFileSystem().open("/log", create=True)
    handle.append([data])
    return handle


def test_windows_hold_whole_batches_and_grow_for_large_ones() -> None:
    sizes = [10, 900, 10, 10, 5000, 10]
    data = b"".join(bytes(batch(1, size=size, base=n)) for n, size in enumerate(sizes))
    seen, covered = [], b""
    for window, found in windows(opened(data), 0, len(data), 1000):
        assert found[0].position == len(covered)
        covered += window[: sum(facts.size for facts in found)]
        seen += [facts.base_offset for facts in found]
    assert seen == [0, 1, 2, 3, 4, 5]
    assert covered == data


def test_old_messages_are_found_too() -> None:
    data = bytes(build_message_set([Record(0, 1, b"k", b"v"), Record(1, 1, None, b"")], 0))
    data += bytes(build_message_set([Record(2, 1, b"k", b"v")], 1)) + bytes(batch(1, base=3))
    [(_, found)] = windows(opened(data), 0, len(data), 1 << 16)
    assert [(facts.magic, facts.last_offset) for facts in found] == [(0, 0), (0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("at", [8, 16, 30, 70])
def test_damage_is_told(at: int) -> None:
    data = batch(1, size=50) + batch(1, size=50, base=1)
    data[at] ^= 0x55
    with pytest.raises(CorruptLog):
        list(windows(opened(bytes(data)), 0, len(data), 1 << 16))


@pytest.mark.parametrize("cut", [1, 60, 100])
def test_a_batch_that_leaves_the_file_is_told(cut: int) -> None:
    data = bytes(batch(1, size=50) + batch(1, size=50, base=1))[:-cut]
    with pytest.raises(CorruptLog):
        list(windows(opened(data), 0, len(data), 1 << 16))

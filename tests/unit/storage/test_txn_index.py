import errno

import pytest

from storage.txn_index import ENTRY, AbortedTxn, TxnIndex
from tests.simulation.files import SimFileSystem

PATH = "/p/00000000000000000000.txnindex"


def new_index(*entries, files=None, base=0):
    files = files or SimFileSystem()
    files.make_dirs("/p")
    index = TxnIndex(files, PATH, base)
    for number, (first, last, stable) in enumerate(entries):
        index.append(AbortedTxn(number, first, last, stable))
    return files, index


OVERLAPPING = ((0, 10, 11), (5, 15, 13), (18, 35, 25), (32, 50, 40))


def test_markers_must_rise_and_a_reopened_file_goes_on():
    """storage.md 27."""
    files, index = new_index((0, 10, 2), (5, 15, 16))
    for last in (14, 15):
        with pytest.raises(ValueError, match="not above 15"):
            index.append(AbortedTxn(9, 11, last, 12))
    index.close()
    again = TxnIndex(files, PATH, 0)
    assert len(again) == 2
    with pytest.raises(ValueError, match="not above 15"):
        again.append(AbortedTxn(9, 11, 15, 12))
    again.append(AbortedTxn(2, 18, 35, 25))
    assert [entry.last_offset for entry in again] == [10, 15, 35]
    assert files.size(PATH) == 3 * 34


def test_truncation_drops_the_marker_at_the_cut():
    """storage.md 27."""
    for cut, kept in ((51, 4), (50, 3), (35, 2), (11, 1), (10, 0), (0, 0)):
        files, index = new_index(*OVERLAPPING)
        index.truncate_to(cut)
        assert len(index) == len(list(index)) == kept
        assert files.size(PATH) == kept * 34
        index.append(AbortedTxn(7, 40, 60, 61))
        assert [entry.last_offset for entry in index][-1] == 60


@pytest.mark.parametrize(
    ("bounds", "found", "complete"),
    [
        ((0, 100), 4, False),
        ((0, 32), 3, True),
        ((11, 35), 3, True),
        ((20, 41), 2, False),
        ((20, 40), 2, True),
        ((26, 35), 2, True),
        ((51, 60), 0, False),
    ],
)
def test_search_finds_what_touches_the_range(bounds, found, complete):
    """storage.md 28, and ranges beside it."""
    _, index = new_index(*OVERLAPPING)
    entries, whole = index.collect(*bounds)
    assert (len(entries), whole) == (found, complete)
    assert entries == list(index)[4 - found :] or bounds[1] == 32


def test_what_is_wrong_with_a_file():
    """storage.md 29: a file of another base, of a later version, out of order, torn."""
    files, index = new_index((0, 10, 2))
    assert index.problem() is None
    assert "marker at 10" in TxnIndex(files, PATH, 100).problem()
    handle = files.open(PATH)
    handle.append([ENTRY.pack(1, 1, 1, 20, 1)])
    assert "version 1" in TxnIndex(files, PATH, 0).problem()
    handle.truncate(34)
    handle.append([ENTRY.pack(0, 1, 1, 10, 1)])
    assert "behind 10" in TxnIndex(files, PATH, 0).problem()
    handle.truncate(40)
    assert "multiple of 34" in TxnIndex(files, PATH, 0).problem()


def test_without_entries_there_is_no_file_and_renaming_keeps_the_handle():
    """storage.md 29."""
    files, index = new_index()
    index.write_out()
    index.truncate_to(0)
    assert not files.exists(PATH)
    assert index.problem() is None
    index.rename(PATH)
    index.append(AbortedTxn(1, 0, 5, 6))
    index.rename(PATH + ".deleted")
    index.append(AbortedTxn(1, 6, 8, 9))
    assert files.size(PATH + ".deleted") == 68
    assert [entry.last_offset for entry in index] == [5, 8]
    index.remove()
    assert not files.exists(PATH + ".deleted")


def test_a_full_disk_keeps_the_entry_in_memory_until_there_is_space():
    files, index = new_index((0, 10, 2))
    files.fail_next("append", errno.ENOSPC, ".txnindex", 5)
    with pytest.raises(OSError, match="space"):
        index.append(AbortedTxn(1, 11, 20, 21))
    assert [entry.last_offset for entry in index] == [10, 20]
    assert index.collect(12, 15)[0] == [AbortedTxn(1, 11, 20, 21)]
    index.write_out()
    assert files.size(PATH) == 68
    assert [entry.last_offset for entry in TxnIndex(files, PATH, 0)] == [10, 20]


def test_a_cut_takes_of_what_waits_for_space_what_lies_behind_it():
    files, index = new_index((0, 10, 2))
    for entry in (AbortedTxn(1, 11, 20, 21), AbortedTxn(1, 22, 30, 31)):
        files.fail_next("append", errno.ENOSPC, ".txnindex", 5)
        with pytest.raises(OSError, match="space"):
            index.append(entry)
    index.truncate_to(30)
    assert [entry.last_offset for entry in index] == [10, 20]
    index.append(AbortedTxn(1, 25, 26, 27))
    assert [entry.last_offset for entry in TxnIndex(files, PATH, 0)] == [10, 20, 26]


def test_recovery_fills_it_anew():
    files, index = new_index(*OVERLAPPING)
    index.refill([AbortedTxn(4, 1, 12, 13)])
    assert list(TxnIndex(files, PATH, 0)) == [AbortedTxn(4, 1, 12, 13)]
    index.refill([])
    assert not files.exists(PATH)
    assert len(index) == 0

import errno
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.leader_epochs import LeaderEpochs
from tests.simulation.files import SimFileSystem

PATH = "/p/leader-epoch-checkpoint"


def cache(*entries, files=None):
    files = files or SimFileSystem()
    files.make_dirs("/p")
    epochs = LeaderEpochs(files, PATH)
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


@pytest.mark.parametrize(
    ("given_entries", "kept"),
    [
        ([(2, 9), (3, 9)], [(3, 9)]),
        ([(2, 6), (3, 5)], [(3, 5)]),
        ([(1, 5), (2, 6), (1, 7)], [(1, 7)]),
        ([(1, 5), (1, 9)], [(1, 5)]),
        ([(0, 0), (1, 10), (2, 12)], [(0, 0), (1, 10), (2, 12)]),
    ],
)
def test_assignment_keeps_epochs_and_offsets_rising(given_entries, kept):
    """storage.md 87."""
    assert cache(*given_entries).entries == kept


def test_a_negative_epoch_is_refused():
    with pytest.raises(ValueError, match="negative"):
        cache((-1, 0))


@pytest.mark.parametrize(
    ("epoch", "answer"), [(0, (0, 13)), (1, (0, 13)), (2, (2, 17)), (3, (2, 17)), (4, (4, 30)),
                          (5, (-1, -1)), (-1, (-1, -1))]
)  # fmt: skip
def test_end_offsets(epoch, answer):
    """storage.md 88."""
    assert cache((0, 10), (2, 13), (4, 17)).end_offset_for(epoch, 30) == answer


def test_an_epoch_below_the_first_ends_where_that_starts():
    """storage.md 88."""
    assert cache((3, 10), (4, 13)).end_offset_for(1, 30) == (1, 10)
    assert cache().end_offset_for(0, 30) == (-1, -1)


@pytest.mark.parametrize(
    ("start", "kept"),
    [
        (8, [(3, 8), (4, 11)]),
        (9, [(3, 9), (4, 11)]),
        (15, [(4, 15)]),
        (1, [(2, 6), (3, 8), (4, 11)]),
        (6, [(2, 6), (3, 8), (4, 11)]),
        (-1, [(2, 6), (3, 8), (4, 11)]),
    ],
)
def test_truncation_from_the_start(start, kept):
    """storage.md 89."""
    epochs = cache((2, 6), (3, 8), (4, 11))
    epochs.truncate_from_start(start)
    assert epochs.entries == kept


@pytest.mark.parametrize(
    ("end", "kept"), [(8, [(2, 6)]), (9, [(2, 6), (3, 8)]), (-1, [(2, 6), (3, 8), (4, 11)]), (0, [])]
)
def test_truncation_from_the_end(end, kept):
    """storage.md 90."""
    epochs = cache((2, 6), (3, 8), (4, 11))
    epochs.truncate_from_end(end)
    assert epochs.entries == kept


def test_deleted_segments_move_the_first_epoch_up():
    epochs = cache((0, 0), (1, 7), (2, 10))
    epochs.truncate_from_start(5)
    assert epochs.entries == [(0, 5), (1, 7), (2, 10)]
    epochs.truncate_from_start(20)
    assert epochs.entries == [(2, 20)]


def test_the_file_is_kafkas_and_is_read_on_first_use_within_the_logs_bounds():
    files = SimFileSystem()
    cache((0, 0), (1, 7), (5, 20), files=files)
    assert files.read_bytes(PATH) == b"0\n3\n0 0\n1 7\n5 20\n"
    epochs = LeaderEpochs(files, PATH)
    epochs.restrict(3, 20)
    assert epochs.entries == [(0, 3), (1, 7)]
    assert epochs.latest_epoch == 1
    assert epochs.epoch_at(6) == 0
    assert epochs.epoch_at(7) == 1
    assert epochs.epoch_at(2) == -1


def test_an_epoch_assigned_beyond_a_cut_really_begins_at_the_cut():
    epochs = cache((0, 0), (1, 13))
    epochs.clip(10)
    assert epochs.entries == [(0, 0), (1, 10)]


def test_what_found_no_room_in_the_file_gets_there_with_the_next_assignment():
    files = SimFileSystem()
    epochs = cache((0, 0), (1, 13), files=files)
    files.fail_next("append", errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        epochs.truncate_from_end(13)
    assert epochs.entries == [(0, 0)]
    epochs.assign(0, 13)
    assert LeaderEpochs(files, PATH).entries == [(0, 0)]


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("aes"), st.integers(0, 8), st.integers(0, 30)), max_size=12))
def test_epochs_and_offsets_always_rise_and_the_file_never_lacks_an_entry(steps):
    files = SimFileSystem()
    epochs = cache(files=files)
    for what, epoch, offset in steps:
        if what == "a":
            epochs.assign(epoch, offset)
        elif what == "e":
            epochs.truncate_from_end(offset)
        else:
            epochs.truncate_from_start(offset)
        entries = epochs.entries
        assert all(a[0] < b[0] and a[1] < b[1] for a, b in itertools.pairwise(entries))
        assert LeaderEpochs(files, PATH).entries == entries


def test_a_file_of_a_former_process_is_in_doubt_until_it_is_synced():
    epochs = cache()
    assert epochs.unsynced() is None
    epochs.doubt()
    assert epochs.unsynced() == PATH
    epochs.synced(epochs.writes)
    assert epochs.unsynced() is None


def test_a_last_line_that_is_cut_is_no_entry():
    files = SimFileSystem()
    cache((0, 0), (2, 21), files=files)
    files.write_atomic(PATH, files.read_bytes(PATH)[:-2])
    assert LeaderEpochs(files, PATH).entries == []

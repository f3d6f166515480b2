import pytest

from storage.errors import AppendRefused
from storage.producers.settings import ProducerSettings
from storage.producers.state import ProducerState
from tests.simulation.files import SimFileSystem
from tests.support.logs import FixedClock, facts


def state():
    files = SimFileSystem()
    files.make_dirs("/p")
    return files, ProducerState(files, "/p")


def test_an_unknown_producer_may_begin_anywhere():
    _, producers = state()
    assert producers.stage(1, 0, 17, 0, 0, 100) is None
    assert producers.entries[1].last_sequence == 17


def test_rollback_leaves_no_trace_and_commit_does():
    _, producers = state()
    producers.stage(1, 0, 0, 0, 0, 100)
    producers.commit(1)
    before = {k: facts(e) for k, e in producers.entries.items()}
    producers.stage(1, 0, 1, 1, 0, 101)
    producers.stage(2, 0, 0, 2, 0, 102)
    producers.stage(1, 1, 0, 3, 0, 103)
    assert producers.stage(2, 0, 0, 9, 0, 102) == (0, 0, 2, 0, 102)
    producers.rollback()
    assert {k: facts(e) for k, e in producers.entries.items()} == before
    assert producers.map_end_offset == 1


def test_a_refused_batch_changes_nothing():
    _, producers = state()
    producers.stage(1, 0, 0, 0, 0, 100)
    with pytest.raises(AppendRefused):
        producers.stage(1, 0, 5, 5, 0, 100)
    assert producers.entries[1].last_sequence == 0


def test_replay_takes_duplicates_and_gaps_and_follows_transactions():
    """storage.md 76."""
    _, producers = state()
    producers.replay(1, 0, 0, 9, 9, 100, False)
    producers.replay(1, 0, 0, 19, 9, 100, False)
    producers.replay(1, 0, 500, 20, 0, 100, True)
    producers.replay(1, 0, 501, 22, 1, 100, True)
    entry = producers.entries[1]
    assert entry.last_sequence == 502
    assert entry.current_txn_first_offset == 20
    producers.replay_marker(1, 1, 4, 23, 200, True)
    assert facts(entry) == (1, 1, (), 4, 200, -1)


def test_snapshots_restore_the_last_batch_and_an_open_transaction():
    """storage.md 77."""
    files, producers = state()
    producers.replay(1, 0, 0, 9, 9, 100, True)
    producers.replay(2, 3, 5, 12, 2, 101, False)
    producers.map_end_offset = 13
    assert producers.take_snapshot() == "/p/00000000000000000013.snapshot"
    assert producers.take_snapshot() is None
    again = ProducerState(files, "/p")
    assert again.load(0, 20) == 13
    assert again.entries[1].current_txn_first_offset == 0
    assert again.entries[2].batches == [(5, 7, 12, 2, 101)]


def test_loading_removes_snapshots_above_the_end_and_damaged_ones():
    """storage.md 78."""
    files, producers = state()
    for offset in (1, 2, 3, 4, 5):
        producers.replay(1, 0, offset - 1, offset - 1, 0, 100, False)
        producers.map_end_offset = offset
        producers.take_snapshot()
    files.open("/p/00000000000000000003.snapshot").write_at(8, b"\xff")
    again = ProducerState(files, "/p")
    assert again.load(0, 3) == 2
    assert again.snapshot_offsets() == [1, 2]
    assert again.entries[1].last_offset == 1


def test_a_snapshot_from_before_the_first_segment_does_not_count():
    files, producers = state()
    producers.replay(1, 0, 0, 4, 4, 100, False)
    producers.map_end_offset = 5
    producers.take_snapshot()
    again = ProducerState(files, "/p")
    assert again.load(6, 9) == 6
    assert not again.entries
    assert again.load(5, 9) == 5
    assert again.entries


def test_idle_producers_expire_unless_a_transaction_is_open():
    _, producers = state()
    producers.replay(1, 0, 0, 0, 0, 100, False)
    producers.replay(2, 0, 0, 1, 0, 100, True)
    producers.replay(3, 0, 0, 2, 0, 5000, False)
    producers._settings.expiration_ms = 1000
    assert producers.expire(1099) == 0
    assert producers.expire(1100) == 1
    assert list(producers.entries) == [2, 3]
    assert producers.stage(1, 0, 1, 9, 0, 2000) is None


def test_clearing_and_removing_snapshots():
    _, producers = state()
    for offset in (1, 2, 3):
        producers.map_end_offset = offset
        producers.take_snapshot()
    gone = producers.set_aside_snapshots(below=3)
    assert gone == [producers.path_of(1) + ".deleted", producers.path_of(2) + ".deleted"]
    assert producers.snapshot_offsets() == [3]
    producers.clear(9)
    assert producers.snapshot_offsets() == []
    assert producers.take_snapshot() is None


def test_beyond_the_limit_those_that_were_quiet_for_longest_are_forgotten(monkeypatch):
    monkeypatch.setattr("storage.producers.state.PRODUCERS_MAX", 16)
    _, producers = state()
    producers.replay(99, 0, 0, 0, 0, 2**62, transactional=True)
    for number in range(1, 16):
        producers.stage(number, 0, 0, number, 0, 2**62 - number)
        producers.commit(number + 1)
    producers.stage(1, 0, 1, 16, 0, 5)
    producers.commit(17)
    producers.stage(50, 0, 0, 17, 0, 0)
    assert set(producers.entries) == {1, *range(4, 16), 50, 99}
    producers.rollback()
    assert 50 not in producers.entries
    assert producers.stage(2, 0, 7, 18, 0, 0) is None  # as an unknown producer


def test_what_is_staged_is_not_forgotten(monkeypatch):
    monkeypatch.setattr("storage.producers.state.PRODUCERS_MAX", 4)
    _, producers = state()
    for number in range(8):
        producers.stage(number, 0, 0, number, 0, 0)
    assert set(producers.entries) == set(range(8))
    producers.commit(8)
    producers.stage(9, 0, 0, 8, 0, 0)
    assert set(producers.entries) == {2, 3, 4, 5, 6, 7, 9}


def test_there_is_one_snapshot_for_an_offset():
    """storage.md 79."""
    files, producers = state()
    producers.replay(1, 0, 0, 0, 0, 100, False)
    producers.map_end_offset = 1
    assert producers.take_snapshot() == producers.path_of(1)
    files.remove(producers.path_of(1))
    assert producers.take_snapshot() is None
    producers.map_end_offset = 2
    assert producers.take_snapshot() == producers.path_of(2)
    assert producers.snapshot_offsets() == [2]


def test_a_cut_log_loads_the_newest_snapshot_that_is_left():
    """storage.md 80, but that a snapshot at the first base is kept: it saves producers that Kafka forgets."""
    files, producers = state()
    for offset in range(1, 6):
        producers.replay(1, 0, offset - 1, offset - 1, 0, 100, False)
        producers.map_end_offset = offset
        producers.take_snapshot()
    again = ProducerState(files, "/p")
    assert again.load(1, 3) == 3
    assert again.snapshot_offsets() == [1, 2, 3]
    assert again.entries[1].last_sequence == 2
    files.remove(again.path_of(3))
    files.remove(again.path_of(2))
    assert again.load(1, 3) == 1


def test_what_a_snapshot_holds_of_expired_producers_is_passed_over():
    files, producers = state()
    producers.replay(1, 0, 0, 0, 0, 100, False)
    producers.replay(2, 0, 0, 1, 0, 100, True)
    producers.replay(3, 0, 0, 2, 0, 900, False)
    producers.map_end_offset = 3
    producers.take_snapshot()
    again = ProducerState(files, "/p", ProducerSettings(FixedClock(1100), expiration_ms=1000))
    again.load(0, 3)
    assert list(again.entries) == [2, 3]
    assert again.transactions.first_unstable == 1

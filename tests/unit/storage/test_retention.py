"""What retention takes from a log, by start offset, size and time."""

import errno

import pytest

from storage.errors import OffsetOutOfRange, StorageFailed
from storage.log_config import FOREVER, LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, append, batch, checked, open_manager

ONE = len(batch(1))


def new_log(segments=0, *, replicated=True, per_segment=5, ts=START_MS, files=None, clock=None, **settings):
    """A log with so many full segments of single-record batches, the last of them active."""
    config = LogConfig(segment_bytes=per_segment * ONE, **settings)
    manager = open_manager(files or SimFileSystem(), config=config, clock=clock)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for number in range(segments * per_segment):
        at = ts(number) if callable(ts) else ts
        log.append_as_leader(checked(batch(1, ts=at)), 0, START_MS)
        log.write_pending()
        if replicated:
            log.set_high_watermark(log.end_offset)
    return log


def bases(log):
    return log.local.segments.bases()


def test_time_of_zero_empties_any_log_and_keeps_its_place():
    """storage.md 48: LEO stays, one segment is left, a second run finds nothing."""
    for segments in (1, 3):
        log = new_log(segments, retention_ms=0)
        end = log.end_offset
        assert log.delete_old_segments(START_MS + 1) == segments
        assert bases(log) == [end]
        assert (log.start_offset, log.end_offset, log.size_bytes) == (end, end, 0)
        assert log.delete_old_segments(START_MS + 1) == 0
        assert append(log, batch(1)) == end


def test_an_empty_log_is_left_alone():
    log = new_log(0, retention_ms=0, retention_bytes=0)
    assert log.delete_old_segments(FOREVER) == 0
    assert bases(log) == [0]


def test_only_what_is_wholly_below_the_high_watermark_goes():
    """storage.md 49."""
    for mark in range(16):
        log = new_log(3, retention_ms=0, replicated=False)
        log.set_high_watermark(mark)
        gone = log.delete_old_segments(START_MS + 1)
        assert gone == mark // 5
        assert log.start_offset == mark // 5 * 5
        assert log.start_offset <= log.high_watermark <= log.end_offset == 15
    assert bases(log) == [15]
    assert log.active.size == 0


def test_deleted_records_take_their_segments_along():
    """storage.md 50."""
    log = new_log(3, retention_ms=-1)
    for start, left in ((1, 3), (6, 2), (15, 1)):
        assert log.delete_records(start) == start
        log.delete_old_segments(START_MS)
        assert len(bases(log)) == left
        assert log.start_offset == start
    assert bases(log) == [10]  # the active segment stays although all of it lies below the start
    with pytest.raises(OffsetOutOfRange):
        log.delete_records(16)


def test_size_takes_whole_segments_and_never_goes_below_the_limit():
    """storage.md 51."""
    for limit, gone in ((3, 0), (2, 1), (1, 2), (0, 3)):
        log = new_log(3, retention_bytes=limit * 5 * ONE)
        assert log.delete_old_segments(START_MS) == gone
    log = new_log(3, retention_bytes=2 * 5 * ONE + 1)
    assert log.delete_old_segments(START_MS) == 0
    assert new_log(3, retention_bytes=-1).delete_old_segments(START_MS) == 0


@pytest.mark.parametrize(
    ("policy", "gone"), [(("compact",), 1), (("compact", "delete"), 3), (("delete",), 3), ((), 1)]
)
def test_a_log_that_is_only_compacted_loses_what_lies_below_its_start(policy, gone):
    """storage.md 51."""
    log = new_log(3, retention_ms=0, retention_bytes=0, cleanup_policy=policy)
    log.move_start(5)
    assert log.delete_old_segments(START_MS + 1) == gone


def test_time_counts_from_the_greatest_timestamp_of_a_segment():
    log = new_log(3, retention_ms=1000, ts=lambda n: START_MS + n * 100)
    assert log.delete_old_segments(START_MS + 400 + 1000) == 0
    assert log.delete_old_segments(START_MS + 400 + 1001) == 1
    assert log.delete_old_segments(START_MS + 900 + 1001) == 1
    assert bases(log) == [10]
    assert log.delete_old_segments(START_MS + 1400 + 1001) == 1
    assert bases(log) == [15]


def test_a_record_from_the_future_keeps_what_is_behind_it():
    log = new_log(3, retention_ms=1000, ts=lambda n: START_MS + (10**6 if n == 7 else 0))
    assert log.delete_old_segments(START_MS + 2000) == 1
    assert bases(log) == [5, 10]


def test_a_start_that_moved_lets_time_take_the_segments_behind_it():
    """storage.md 52."""
    log = new_log(3, retention_ms=1000, ts=lambda n: START_MS + (10**6 if n == 3 else 0))
    assert log.delete_old_segments(START_MS + 2000) == 0
    log.delete_records(5)
    assert log.delete_old_segments(START_MS + 2000) == 3
    assert bases(log) == [15]


def test_records_without_timestamps_age_by_the_time_the_file_was_changed():
    clock = FixedClock()
    files = SimFileSystem(now_ms=clock.now_ms)
    log = new_log(2, retention_ms=1000, ts=-1, files=files, clock=clock)
    assert log.delete_old_segments(START_MS + 1000) == 0
    assert log.delete_old_segments(START_MS + 1001) == 2


def test_deletion_moves_the_epochs_along():
    """storage.md 53."""
    log = new_log(per_segment=5, retention_ms=0)
    for offset in range(15):
        epoch = 0 if offset < 7 else 1 if offset < 10 else 2
        log.append_as_leader(checked(batch(1, ts=START_MS + offset)), epoch, START_MS)
        log.write_pending()
    log.set_high_watermark(5)
    assert log.leader_epochs.entries == [(0, 0), (1, 7), (2, 10)]
    assert log.delete_old_segments(START_MS + 100) == 1
    assert log.leader_epochs.entries == [(0, 5), (1, 7), (2, 10)]
    log.set_high_watermark(15)
    assert log.delete_old_segments(START_MS + 100) == 2
    assert log.leader_epochs.entries == [(2, 15)]


def test_files_are_renamed_at_once_and_removed_after_the_delay():
    """storage.md 54; the producers' snapshot of a segment goes with it."""
    log = new_log(3, retention_ms=0, file_delete_delay_ms=500)
    files, directory = log.local.files, log.local.directory
    log.set_high_watermark(15)
    log.delete_old_segments(START_MS + 1)
    names = files.list_dir(directory)
    for base in (0, 5, 10):
        assert f"{base:020d}.log.deleted" in names
        assert f"{base:020d}.index.deleted" in names
        assert f"{base:020d}.log" not in names
    assert "00000000000000000005.snapshot.deleted" in names
    assert "00000000000000000010.snapshot.deleted" in names
    assert "00000000000000000015.snapshot" in names
    assert log.local.take_doomed(START_MS + 500) == []
    doomed = [path for paths in log.local.take_doomed(START_MS + 501) for path in paths]
    assert sorted(doomed) == sorted(f"{directory}/{n}" for n in names if n.endswith(".deleted"))


def test_readers_of_a_deleted_segment_end_well():
    log = new_log(3, retention_ms=0)
    piece = log.read(0, 1 << 20, 15)
    log.delete_old_segments(START_MS + 1)
    assert len(piece.to_bytes()) == 5 * ONE
    with pytest.raises(OffsetOutOfRange):
        log.read(0, 1 << 20, 15)


def test_staged_batches_are_not_taken_along():
    log = new_log(per_segment=5, retention_ms=0)
    append(log, batch(1))
    log.append_as_leader(checked(batch(1)), 0, START_MS)
    assert log.delete_old_segments(START_MS + 1) == 0
    log.write_pending()
    log.set_high_watermark(2)
    assert log.delete_old_segments(START_MS + 1) == 1
    assert (log.start_offset, log.end_offset) == (2, 2)


def test_the_start_outlives_a_restart_without_a_checkpoint():
    files = SimFileSystem()
    log = new_log(3, retention_bytes=5 * ONE, files=files)
    log.delete_old_segments(START_MS)
    assert not log.directory.starts_moved
    log.directory.unlock()
    again = open_manager(files).get("t", 0)
    assert (again.start_offset, again.end_offset) == (10, 15)


def test_a_disk_that_fails_takes_the_directory_offline():
    log = new_log(3, retention_ms=0)
    log.local.files.fail_next("rename", errno.EIO, ".log")
    with pytest.raises(StorageFailed):
        log.delete_old_segments(START_MS + 1)
    assert log.directory.offline
    with pytest.raises(StorageFailed):
        log.delete_old_segments(START_MS + 1)

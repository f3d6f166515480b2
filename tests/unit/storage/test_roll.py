"""When a segment is closed and the next one begins."""

import errno

import pytest

from storage.errors import AppendRefused, StorageFailed
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import (
    START_MS,
    TOPIC_ID,
    FixedClock,
    append,
    batch,
    close_clean,
    open_manager,
    read_offsets,
)

ONE = len(batch(1))
HOUR = 3_600_000


def new_log(files=None, clock=None, **settings):
    manager = open_manager(files or SimFileSystem(), config=LogConfig(**settings), clock=clock)
    return manager.get_or_create("t", 0, TOPIC_ID)


def bases(log):
    return log.local.segments.bases()


def test_time_closes_nothing_that_is_empty():
    """storage.md 30: records without timestamps go by the clock, counted from the first append."""
    log = new_log(segment_ms=HOUR)
    append(log, batch(1, ts=-1), now_ms=START_MS + 2 * HOUR)
    assert bases(log) == [0]
    append(log, batch(1, ts=-1), now_ms=START_MS + 3 * HOUR)
    assert bases(log) == [0]
    append(log, batch(1, ts=-1), now_ms=START_MS + 3 * HOUR + 1)
    assert bases(log) == [0, 2]
    append(log, batch(1, ts=-1), now_ms=START_MS + 4 * HOUR + 2)
    assert bases(log) == [0, 2, 3]


def test_timestamps_of_records_count_not_the_clock():
    """storage.md 31."""
    log = new_log(segment_ms=HOUR)
    append(log, batch(1, ts=START_MS))
    append(log, batch(1, ts=START_MS), now_ms=START_MS + 100 * HOUR)
    append(log, batch(1, ts=START_MS + HOUR), now_ms=START_MS)
    assert bases(log) == [0]
    append(log, batch(1, ts=START_MS + HOUR + 1), now_ms=START_MS)
    assert bases(log) == [0, 3]
    append(log, batch(1, ts=START_MS - HOUR), now_ms=START_MS)
    assert bases(log) == [0, 3]


def test_jitter_hastens_the_end_of_a_segment():
    """storage.md 32."""
    jitter = HOUR // 2
    log = new_log(segment_ms=HOUR, segment_jitter_ms=jitter)
    drawn = []
    at = START_MS
    for _ in range(20):
        append(log, batch(1, ts=at))
        segments = len(bases(log))
        drawn.append(log.active.jitter_ms)
        append(log, batch(1, ts=at + HOUR - log.active.jitter_ms))
        assert len(bases(log)) == segments
        at += HOUR - log.active.jitter_ms + 1
        append(log, batch(1, ts=at))
        assert len(bases(log)) == segments + 1
    assert all(0 <= each < jitter for each in drawn)
    assert len(set(drawn)) > 10


def test_a_compacted_log_is_not_older_than_its_greatest_lag():
    log = new_log(segment_ms=HOUR, max_compaction_lag_ms=1000, cleanup_policy=("compact",))
    append(log, batch(1, ts=START_MS, key=b"k"))
    append(log, batch(1, ts=START_MS + 1001, key=b"k"))
    assert bases(log) == [0, 1]


def test_an_empty_segment_is_made_anew():
    """storage.md 33."""
    log = new_log()
    log.roll(START_MS)
    assert bases(log) == [0]
    assert append(log, batch(2)) == 0
    log.roll(START_MS)
    assert bases(log) == [0, 2]
    log.roll(START_MS)
    assert bases(log) == [0, 2]
    assert append(log, batch(1)) == 2
    assert read_offsets(log) == [0, 1, 2]
    assert log.local.files.exists(log.snapshot_path(2))


def test_full_indexes_end_a_segment():
    """storage.md 34; the time index keeps a place for the last entry."""
    log = new_log(index_interval_bytes=0, segment_index_bytes=48)
    for number in range(9):
        append(log, batch(1, ts=START_MS + number))
    first = log.local.segments.first
    assert first.offset_index.entries == first.time_index.entries == 3
    assert bases(log) == [0, 4, 8]
    shrunk = new_log(index_interval_bytes=0)
    append(shrunk, batch(1))
    append(shrunk, batch(1))
    shrunk.update_config(LogConfig(index_interval_bytes=0, segment_index_bytes=0))
    append(shrunk, batch(1))
    append(shrunk, batch(1))
    assert read_offsets(shrunk) == [0, 1, 2, 3]


def test_nobody_rolls_below_the_active_segment_or_a_closed_log():
    """storage.md 35."""
    log = new_log()
    append(log, batch(3))
    log.roll(START_MS)
    append(log, batch(1))
    with pytest.raises(ValueError, match="roll to 2"):
        log.local.roll(2, START_MS)
    log.close()
    with pytest.raises(StorageFailed):
        append(log, batch(1))


def test_an_offset_that_does_not_fit_begins_a_segment_of_its_own():
    """storage.md 36, for a follower: the snapshot has the name of the new base."""
    log = new_log()
    far = (1 << 31) + 1
    log.append_as_follower(batch(1, leader_epoch=0), START_MS)
    log.append_as_follower(batch(1, base=far - 2, leader_epoch=0), START_MS)
    assert bases(log) == [0]
    log.append_as_follower(batch(1, base=far, leader_epoch=0), START_MS)
    assert bases(log) == [0, far]
    assert log.local.files.exists(log.snapshot_path(far))
    assert log.end_offset == far + 1


def test_a_size_that_does_not_fit_a_segment_is_refused_whoever_appends():
    """storage.md 43."""
    log = new_log(segment_bytes=2 * ONE, max_message_bytes=10)
    log.append_as_follower(batch(1, leader_epoch=0), START_MS)  # larger than max.message.bytes
    with pytest.raises(AppendRefused):
        append(log, batch(1, size=500))
    with pytest.raises(AppendRefused):
        log.append_as_follower(batch(1, size=500, base=1, leader_epoch=0), START_MS)
    assert log.append_as_follower(batch(1, base=1, leader_epoch=0), START_MS) == 2


def test_a_high_watermark_at_the_new_base_shows_the_old_segment_whole():
    """storage.md 41."""
    log = new_log()
    for _ in range(3):
        append(log, batch(1))
    log.roll(START_MS)
    append(log, batch(1))
    assert log.read(0, 1 << 20, 3).length == 3 * ONE
    assert log.read(3, 1 << 20, 3).length == 0


def test_the_base_after_a_reload_counts_time_from_the_first_batch():
    clock = FixedClock()
    files = SimFileSystem()
    log = new_log(files, clock, segment_ms=HOUR)
    append(log, batch(1, ts=START_MS))
    append(log, batch(1, ts=START_MS + HOUR - 1))
    log.directory.unlock()
    log = new_log(files, clock, segment_ms=HOUR)
    append(log, batch(1, ts=START_MS + HOUR))
    assert bases(log) == [0]
    append(log, batch(1, ts=START_MS + HOUR + 1))
    assert bases(log) == [0, 3]


def test_a_log_without_room_for_a_snapshot_goes_on_when_there_is_some():
    files = SimFileSystem()
    log = new_log(files, segment_bytes=2 * ONE)
    append(log, batch(2, producer=1, epoch=0, sequence=0))
    files.fail_next("append", errno.ENOSPC, ".snapshot")
    with pytest.raises(StorageFailed) as failed:
        append(log, batch(1, producer=1, epoch=0, sequence=2, size=40))
    assert not failed.value.offline
    assert append(log, batch(1, producer=1, epoch=0, sequence=2, size=40)) == 2
    log.directory.unlock()
    again = new_log(files)
    assert again.producers.entries[1].last_sequence == 2


@pytest.mark.parametrize("reopened", [False, True])
def test_what_was_appended_is_not_read_again_for_its_producers(reopened, monkeypatch):
    """Rolling, the last stable offset, a first producer and the end need their state: it is followed."""
    files = SimFileSystem()
    manager = open_manager(files)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    if reopened:
        append(log, batch(1))
        manager.close()
        log = open_manager(files).get_or_create("t", 0, TOPIC_ID)
    append(log, batch(1))

    def never(*_):
        raise AssertionError("the log was read")

    monkeypatch.setattr("storage.scan.scan", never)
    for _ in range(3):
        append(log, batch(5))
    assert log.last_stable_offset == log.end_offset
    append(log, batch(1, producer=7, sequence=0))
    log.roll(START_MS)
    append(log, batch(1))
    assert [*log.producers.entries] == [7]
    close_clean(log)


def log_file(base, partition="t-0"):
    return f"/logs/{partition}/{base:020d}.log"


def test_a_preallocated_segment_is_as_long_as_it_may_become_and_is_cut_when_sealed():
    files = SimFileSystem()
    log = new_log(files, preallocate=True, segment_bytes=4 * ONE)
    assert (files.size(log_file(0)), log.size_bytes, log.position) == (4 * ONE, 0, 0)
    for _ in range(3):
        append(log, batch(1))
    assert (files.size(log_file(0)), log.size_bytes) == (4 * ONE, 3 * ONE)
    assert read_offsets(log) == [0, 1, 2]
    log.roll(START_MS)
    assert (files.size(log_file(0)), files.size(log_file(3))) == (3 * ONE, 4 * ONE)
    assert log.size_bytes == 3 * ONE
    for _ in range(4):
        append(log, batch(1))
    assert (bases(log), files.size(log_file(3))) == ([0, 3], 4 * ONE)


def test_a_preallocated_log_is_cut_at_a_clean_stop_and_goes_on_behind_its_end():
    files = SimFileSystem()
    config = LogConfig(preallocate=True, segment_bytes=1 << 20)
    manager = open_manager(files, config=config)
    append(manager.get_or_create("t", 0, TOPIC_ID), batch(2))
    manager.get_or_create("t", 1, TOPIC_ID)
    manager.close()
    assert files.size(log_file(0)) == len(batch(2))
    assert files.size(log_file(0, "t-1")) == 0
    again = open_manager(files.crash(), config=config)
    assert not again.unclean
    log = again.get_or_create("t", 0, TOPIC_ID)
    append(log, batch(1))
    assert (read_offsets(log), log.size_bytes) == ([0, 1, 2], len(batch(2)) + ONE)


def test_zeros_that_a_crash_leaves_in_a_preallocated_log_are_no_records(caplog):
    files = SimFileSystem()
    config = LogConfig(preallocate=True, segment_bytes=1 << 20)
    log = open_manager(files, config=config).get_or_create("t", 0, TOPIC_ID)
    append(log, batch(2))
    log.flush()
    append(log, batch(1))
    crashed = files.crash(tail=lambda path, unsynced: unsynced)
    assert crashed.size(log_file(0)) == 1 << 20
    again = open_manager(crashed, config=config).get_or_create("t", 0, TOPIC_ID)
    assert again.size_bytes == crashed.size(log_file(0))
    assert read_offsets(again)[:2] == [0, 1]
    end = again.end_offset
    append(again, batch(1))
    assert read_offsets(again)[-1] == end


def test_a_write_that_fails_in_a_preallocated_segment_leaves_no_trace():
    files = SimFileSystem()
    log = new_log(files, preallocate=True, segment_bytes=1 << 20)
    append(log, batch(1))
    files.fail_next("append", errno.ENOSPC, ".log", 5)
    with pytest.raises(StorageFailed):
        append(log, batch(1))
    assert log.size_bytes == ONE
    append(log, batch(1))
    assert (read_offsets(log), log.size_bytes) == ([0, 1], 2 * ONE)


def test_a_preallocated_directory_that_is_renamed_goes_on_behind_its_end():
    files = SimFileSystem()
    log = new_log(files, preallocate=True, segment_bytes=1 << 20)
    append(log, batch(1))
    log.local.rename_directory("/logs/u-0")
    log.handle = log.active.handle
    append(log, batch(1))
    assert read_offsets(log) == [0, 1]
    assert files.size(log_file(0, "u-0")) == 2 * ONE


def test_an_empty_segment_has_no_index_files_until_the_log_is_closed():
    """storage.md 55."""
    log = new_log()
    append(log, batch(1))
    log.roll(START_MS)
    names = log.local.files.list_dir(log.local.directory)
    assert [name for name in names if name.startswith(f"{1:020d}")] == [f"{1:020d}.log", f"{1:020d}.snapshot"]
    close_clean(log)
    assert log.local.files.exists(log.active.path(".index")), "Kafka recovers a segment without one"

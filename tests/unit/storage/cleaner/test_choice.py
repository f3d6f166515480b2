from storage.cleaner.choice import DirtyLog, assess, dirtiest, first_dirty_offset
from storage.log_config import LogConfig
from storage.partition_log import PartitionLog
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, append, batch, open_manager

SIZE = len(batch(1, key=b"k"))


def filled(count: int = 10, **settings: object) -> PartitionLog:
    """Segments of two batches with times START_MS, +1, +2...; the last batch is in the active one."""
    config = LogConfig(segment_bytes=2 * SIZE, cleanup_policy=("compact",), **settings)
    manager = open_manager(SimFileSystem(), config=config, clock=FixedClock())
    log = manager.get_or_create("t", 0, TOPIC_ID)
    log.set_high_watermark(0)
    for number in range(count):
        append(log, batch(1, key=b"k", ts=START_MS + number))
    log.flush()
    return log


def test_all_but_the_active_segment_is_dirty_at_first() -> None:
    dirty = assess(filled(9), None, START_MS)
    assert (dirty.first_dirty, dirty.first_uncleanable) == (0, 8)
    assert (dirty.clean_bytes, dirty.cleanable_bytes) == (0, 8 * SIZE)
    assert dirty.ratio == 1.0
    assert dirty.is_due


def test_bytes_are_counted_in_whole_segments() -> None:
    dirty = assess(filled(9), 4, START_MS)
    assert (dirty.clean_bytes, dirty.cleanable_bytes) == (4 * SIZE, 4 * SIZE)
    assert dirty.ratio == 0.5
    assert not dirty.is_due, "the ratio must be exceeded"
    dirty = assess(filled(9), 3, START_MS)
    assert (dirty.first_dirty, dirty.clean_bytes, dirty.cleanable_bytes) == (3, 4 * SIZE, 6 * SIZE)
    assert dirty.is_due


def test_a_checkpoint_outside_the_log_means_its_start() -> None:
    log = filled(9)
    assert first_dirty_offset(log, 9) == 9
    assert first_dirty_offset(log, 10) == 0
    log.move_start(5)
    assert first_dirty_offset(log, 4) == 5
    assert first_dirty_offset(log, None) == 5


def test_what_is_not_committed_is_not_cleaned() -> None:
    log = filled(9)
    log.set_high_watermark(5)
    assert assess(log, None, START_MS).first_uncleanable == 4
    log.set_high_watermark(1)
    dirty = assess(log, None, START_MS)
    assert (dirty.first_uncleanable, dirty.cleanable_bytes, dirty.ratio) == (0, 0, 0.0)
    assert not dirty.is_due


def test_what_is_not_synced_is_not_cleaned() -> None:
    log = filled(5)
    for number in range(6):
        append(log, batch(1, key=b"k", ts=START_MS + number))
    assert log.recovery_point == 5
    assert assess(log, None, START_MS).first_uncleanable == 4


def test_young_records_wait_for_the_minimum_lag() -> None:
    log = filled(9, min_compaction_lag_ms=100)
    assert assess(log, None, START_MS + 104).first_uncleanable == 4
    assert assess(log, None, START_MS + 107).first_uncleanable == 8
    assert assess(log, None, START_MS + 5).cleanable_bytes == 0
    assert assess(log, 6, START_MS + 104).first_uncleanable == 6


def test_a_record_that_waits_too_long_makes_the_log_due() -> None:
    log = filled(9, max_compaction_lag_ms=100, min_cleanable_dirty_ratio=1.0)
    assert not assess(log, None, START_MS + 100).is_due
    dirty = assess(log, None, START_MS + 130)
    assert dirty.delay_ms == 30
    assert dirty.is_due
    assert assess(log, 4, START_MS + 130).delay_ms == 26
    assert not assess(log, 8, START_MS + 1000).is_due


def test_the_dirtiest_log_comes_first() -> None:
    log = filled(3)
    some = [DirtyLog(log, 0, 1, clean, cleanable, 0) for clean, cleanable in ((4, 6), (1, 9), (8, 2))]
    assert dirtiest(some) is some[1]
    assert dirtiest([some[2]]) is None
    assert dirtiest([]) is None

import pytest

from protocol.errors import ErrorCode
from storage.errors import AppendRefused, OffsetOutOfRange, StorageFailed
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import (
    START_MS,
    TOPIC_ID,
    FixedClock,
    append,
    batch,
    checked,
    facts,
    open_manager,
    read_offsets,
    read_records,
)

ONE = len(batch(1))


def new_log(config=None, files=None, clock=None):
    manager = open_manager(files or SimFileSystem(), config=config, clock=clock)
    return manager.get_or_create("t", 0, TOPIC_ID)


def bases(log):
    return log.local.segments.bases()


# --- appends


def test_offsets_run_on_and_are_stamped_with_the_leader_epoch():
    log = new_log()
    data = batch(3)
    appended = log.append_as_leader(checked(data), 7, START_MS)
    assert appended == (0, 2, -1, False)
    assert append(log, batch(2), epoch=7) == 3
    assert log.end_offset == log.next_offset == 5
    assert log.leader_epochs.entries == [(7, 0)]
    stored = log.read(0, 1 << 20, 5).to_bytes()
    assert int.from_bytes(stored[12:16], "big") == 7
    assert [r.offset for r in read_records(log)] == [0, 1, 2, 3, 4]


def test_a_batch_is_not_visible_before_its_write():
    log = new_log()
    log.append_as_leader(checked(batch(3)), 0, START_MS)
    assert (log.end_offset, log.next_offset) == (0, 3)
    assert log.read(0, 100, 1 << 40).length == 0
    with pytest.raises(OffsetOutOfRange):
        log.read(1, 100, 1 << 40)
    log.write_pending()
    assert log.end_offset == 3
    assert log.read(0, 1000, 3).length == len(batch(3))


@pytest.mark.parametrize("size", [10, 20_000])
def test_a_batch_may_lie_anywhere_in_a_buffer(size):
    log = new_log()
    data = batch(2, size=size)
    frame = bytearray(b"head" + bytes(data) + b"tail")
    facts = checked(data)._replace(buf=frame, at=4)
    log.append_as_leader(facts, 0, START_MS)
    if size == 10:
        frame[:] = bytes(len(frame))  # small ones are taken over at once
    log.write_pending()
    assert read_offsets(log) == [0, 1]
    assert log.size_bytes == len(data)


def test_a_new_epoch_begins_at_the_end_of_the_log():
    log = new_log()
    append(log, batch(2), epoch=0)
    log.assign_epoch(3)
    append(log, batch(2), epoch=3)
    append(log, batch(1), epoch=5)
    assert log.leader_epochs.entries == [(0, 0), (3, 2), (5, 4)]


def test_an_append_larger_than_a_segment_is_refused():
    log = new_log(LogConfig(segment_bytes=200))
    with pytest.raises(AppendRefused) as caught:
        append(log, batch(1, size=300))
    assert caught.value.error is ErrorCode.RECORD_LIST_TOO_LARGE
    assert append(log, batch(1)) == 0


# --- idempotence


def test_duplicates_get_their_first_offsets_and_write_nothing():
    log = new_log()
    for sequence in range(0, 14, 2):
        append(log, batch(2, producer=9, epoch=0, sequence=sequence, ts=START_MS + sequence))
    size = log.size_bytes
    tail = log.append_as_leader(checked(batch(2, producer=9, epoch=0, sequence=12)), 0, START_MS)
    assert tail == (12, 13, START_MS + 12, True)
    fifth = log.append_as_leader(checked(batch(2, producer=9, epoch=0, sequence=4)), 0, START_MS)
    assert fifth == (4, 5, START_MS + 4, True)
    with pytest.raises(AppendRefused) as caught:
        log.append_as_leader(checked(batch(2, producer=9, epoch=0, sequence=2)), 0, START_MS)
    assert caught.value.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not log.staged
    assert log.size_bytes == size


def test_a_duplicate_of_a_staged_batch_is_recognised():
    log = new_log()
    first = log.append_as_leader(checked(batch(2, producer=9, epoch=0, sequence=0)), 0, START_MS)
    again = log.append_as_leader(checked(batch(2, producer=9, epoch=0, sequence=0)), 0, START_MS)
    assert again[:2] == first[:2]
    assert again.duplicate
    log.write_pending()
    assert read_offsets(log) == [0, 1]


def test_producer_state_outlives_a_clean_restart_with_one_duplicate():
    files = SimFileSystem()
    manager = open_manager(files)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for sequence in range(3):
        append(log, batch(1, producer=9, epoch=0, sequence=sequence))
    manager.close()
    log = open_manager(files).get("t", 0)
    assert not log.has_producers
    duplicate = log.append_as_leader(checked(batch(1, producer=9, epoch=0, sequence=2)), 0, START_MS)
    assert duplicate.duplicate
    assert duplicate.base_offset == 2
    assert append(log, batch(1, producer=9, epoch=0, sequence=3)) == 3


# --- rolling


def test_a_full_segment_is_closed_before_the_append():
    log = new_log(LogConfig(segment_bytes=3 * ONE))
    for _ in range(7):
        append(log, batch(1))
    assert bases(log) == [0, 3, 6]
    assert read_offsets(log) == list(range(7))


def test_a_turn_may_span_segments():
    log = new_log(LogConfig(segment_bytes=3 * ONE))
    for _ in range(8):
        log.append_as_leader(checked(batch(1)), 0, START_MS)
    log.write_pending()
    assert log.end_offset == 8
    assert bases(log) == [0, 3, 6]
    assert read_offsets(log) == list(range(8))


def test_age_counts_by_record_time_and_needs_a_non_empty_segment():
    clock = FixedClock()
    log = new_log(LogConfig(segment_ms=1000), clock=clock)
    append(log, batch(1, ts=START_MS), now_ms=START_MS + 50_000)
    append(log, batch(1, ts=START_MS + 1000), now_ms=START_MS + 99_000)
    assert bases(log) == [0]
    append(log, batch(1, ts=START_MS + 1001), now_ms=START_MS)
    assert bases(log) == [0, 2]
    append(log, batch(1, ts=5), now_ms=START_MS)
    assert bases(log) == [0, 2]


def test_without_timestamps_the_wall_clock_counts():
    log = new_log(LogConfig(segment_ms=1000))
    append(log, batch(1, ts=-1), now_ms=START_MS)
    append(log, batch(1, ts=-1), now_ms=START_MS + 1000)
    assert bases(log) == [0]
    append(log, batch(1, ts=-1), now_ms=START_MS + 1001)
    assert bases(log) == [0, 2]


def test_after_a_restart_the_age_counts_from_the_first_batch():
    files = SimFileSystem()
    config = LogConfig(segment_ms=1000)
    manager = open_manager(files, config=config)
    append(manager.get_or_create("t", 0, TOPIC_ID), batch(1, ts=START_MS))
    manager.close()
    log = open_manager(files, config=config).get("t", 0)
    append(log, batch(1, ts=START_MS + 900))
    assert bases(log) == [0]
    append(log, batch(1, ts=START_MS + 1001))
    assert bases(log) == [0, 2]


def test_jitter_rolls_earlier_but_not_before_its_bound():
    ages = set()
    for seed in range(30):
        manager = open_manager(
            SimFileSystem(), config=LogConfig(segment_ms=100, segment_jitter_ms=40), seed=bytes([seed])
        )
        log = manager.get_or_create("t", 0, TOPIC_ID)
        append(log, batch(1, ts=START_MS))
        age = 0
        while len(bases(log)) == 1:
            age += 1
            append(log, batch(1, ts=START_MS + age))
        ages.add(age)
    assert min(ages) > 60
    assert max(ages) <= 101
    assert len(ages) > 5


def test_a_full_index_closes_the_segment():
    log = new_log(LogConfig(index_interval_bytes=0, segment_index_bytes=24))
    for number in range(8):
        append(log, batch(1, ts=START_MS + number))
    assert all(s.offset_index.entries <= 3 and s.time_index.entries <= 2 for s in log.local.segments)
    assert len(bases(log)) > 2
    assert read_offsets(log) == list(range(8))


def test_rolling_an_empty_segment_makes_it_anew():
    log = new_log()
    log.roll(START_MS)
    assert bases(log) == [0]
    append(log, batch(2))
    log.roll(START_MS)
    log.roll(START_MS)
    assert bases(log) == [0, 2]
    assert append(log, batch(1)) == 2
    assert read_offsets(log) == [0, 1, 2]


def test_a_roll_leaves_a_snapshot_and_indexes_of_exact_size():
    files = SimFileSystem()
    log = new_log(LogConfig(index_interval_bytes=ONE), files=files)
    for sequence in range(6):
        append(log, batch(1, producer=4, epoch=0, sequence=sequence, ts=START_MS + sequence))
    log.roll(START_MS)
    names = files.list_dir("/logs/t-0")
    assert "00000000000000000006.snapshot" in names
    assert "00000000000000000006.index" not in names
    assert files.size("/logs/t-0/00000000000000000000.index") == 2 * 8
    assert files.size("/logs/t-0/00000000000000000000.timeindex") == 3 * 12  # and the final entry


def test_thirty_batches_with_twice_their_size_as_interval_give_fourteen_entries():
    log = new_log(LogConfig(index_interval_bytes=2 * ONE - 1))
    for number in range(30):
        append(log, batch(1, ts=START_MS + number))
    assert log.active.offset_index.entries == log.active.time_index.entries == 14


def test_index_entries_do_not_depend_on_how_appends_fall_into_turns():
    config = LogConfig(index_interval_bytes=2 * ONE)
    together, apart = new_log(config), new_log(config)
    for number in range(25):
        together.append_as_leader(checked(batch(1 + number % 2, ts=START_MS + number % 7)), 0, START_MS)
        append(apart, batch(1 + number % 2, ts=START_MS + number % 7))
    together.write_pending()
    for log in (together, apart):
        log.roll(START_MS)
    first, second = (log.local.segments.first for log in (together, apart))
    for name in ("offset_index", "time_index"):
        left, right = getattr(first, name), getattr(second, name)
        assert [left.entry(i) for i in range(left.entries)] == [right.entry(i) for i in range(right.entries)]


# --- failed writes


@pytest.mark.parametrize("partial", [0, 7, ONE + 3])
def test_a_full_disk_fails_the_turn_and_the_log_goes_on(partial):
    files = SimFileSystem()
    log = new_log(files=files)
    append(log, batch(2, producer=3, epoch=0, sequence=0))
    before = facts(log.producers.entries[3])
    log.append_as_leader(checked(batch(1, producer=3, epoch=0, sequence=2)), 4, START_MS)
    log.append_as_leader(checked(batch(2, producer=8, epoch=0, sequence=0)), 4, START_MS)
    files.fail_next("append", 28, ".log", written_bytes=partial)
    with pytest.raises(StorageFailed) as caught:
        log.write_pending()
    assert caught.value.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert not caught.value.offline
    assert not log.directory.offline
    assert (log.end_offset, log.next_offset) == (2, 2)
    assert facts(log.producers.entries[3]) == before
    assert list(log.producers.entries) == [3]
    assert append(log, batch(1, producer=3, epoch=0, sequence=2), epoch=4) == 2
    assert log.leader_epochs.entries == [(0, 0), (4, 2)]
    assert read_offsets(log) == [0, 1, 2]


def test_an_io_error_takes_the_directory_offline_with_all_its_logs():
    files = SimFileSystem()
    manager = open_manager(files)
    log, other = manager.get_or_create("t", 0, TOPIC_ID), manager.get_or_create("t", 1, TOPIC_ID)
    append(log, batch(1))
    append(other, batch(1))
    failed = []
    manager.on_failure = failed.append
    log.append_as_leader(checked(batch(1)), 0, START_MS)
    other.append_as_leader(checked(batch(1)), 0, START_MS)
    files.fail_next("append", 5, "t-0/")
    with pytest.raises(StorageFailed) as caught:
        log.write_pending()
    assert caught.value.offline
    with pytest.raises(StorageFailed):
        other.write_pending()
    assert other.end_offset == 1
    for each in (log, other):
        with pytest.raises(StorageFailed):
            each.read(0, 10, 1)
        with pytest.raises(StorageFailed):
            append(each, batch(1))
    assert failed == [log.directory]


def test_a_full_disk_during_a_roll_refuses_that_append_only():
    files = SimFileSystem()
    log = new_log(LogConfig(segment_bytes=3 * ONE), files=files)
    for _ in range(3):
        append(log, batch(1))
    files.fail_next("open", 28, "003.log")
    with pytest.raises(StorageFailed) as caught:
        append(log, batch(1))
    assert not caught.value.offline
    assert read_offsets(log) == [0, 1, 2]
    assert append(log, batch(1)) == 3
    assert bases(log) == [0, 3]
    assert read_offsets(log) == [0, 1, 2, 3]


def test_a_failed_sync_takes_the_directory_offline():
    files = SimFileSystem()
    log = new_log(LogConfig(flush_messages=2), files=files)
    append(log, batch(1))
    files.fail_next("sync", 28, ".log")
    with pytest.raises(StorageFailed):
        append(log, batch(1))
    assert log.directory.offline


def test_flush_messages_syncs_before_the_write_counts():
    files = SimFileSystem()
    log = new_log(LogConfig(flush_messages=1), files=files)
    append(log, batch(2))
    assert log.recovery_point == 2
    after = open_manager(files.crash()).get("t", 0)
    assert read_offsets(after) == [0, 1]


# --- high watermark


def test_the_high_watermark_stays_within_the_log():
    log = new_log()
    append(log, batch(5))
    assert log.set_high_watermark(99) == 5
    assert log.set_high_watermark(2) == 2
    log.move_start(3)
    assert log.set_high_watermark(0) == 3
    assert log.last_stable_offset == 3


def test_new_settings_hold_from_the_next_append_on():
    log = new_log()
    for _ in range(4):
        append(log, batch(1))
    log.update_config(LogConfig(segment_bytes=2 * ONE))
    append(log, batch(1))
    append(log, batch(1))
    append(log, batch(1))
    assert bases(log) == [0, 4, 6]
    log.update_config(LogConfig())
    for _ in range(5):
        append(log, batch(1))
    assert bases(log) == [0, 4, 6]

"""Cutting a log at either end, and wholly."""

import pytest

from protocol.errors import ErrorCode
from storage.errors import OffsetOutOfRange, StorageError, StorageFailed
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import (
    START_MS,
    TOPIC_ID,
    append,
    batch,
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


def filled(count=10, **config):
    log = new_log(LogConfig(segment_bytes=5 * ONE, **config))
    for number in range(count):
        append(log, batch(1, producer=2, epoch=0, sequence=number, ts=START_MS + number), epoch=number // 4)
    return log


def test_truncation_removes_whole_batches_and_what_was_derived_from_them():
    log = filled(12)
    assert log.truncate_to(7, START_MS)
    assert (log.end_offset, log.next_offset, log.high_watermark) == (7, 7, 7)
    assert log.leader_epochs.entries == [(0, 0), (1, 4)]
    assert log.producers.entries[2].last_sequence == 6
    assert bases(log) == [0, 5]
    assert append(log, batch(1, producer=2, epoch=0, sequence=7), epoch=9) == 7
    assert read_offsets(log) == list(range(8))


def test_truncating_at_or_above_the_end_only_drops_epochs_there():
    log = filled(4)
    log.assign_epoch(9)
    assert not log.truncate_to(4, START_MS)
    assert not log.truncate_to(5, START_MS)
    assert log.leader_epochs.entries == [(0, 0)]
    assert read_offsets(log) == [0, 1, 2, 3]


def test_truncating_inside_a_batch_removes_all_of_it():
    log = new_log()
    append(log, batch(3))
    append(log, batch(3))
    log.truncate_to(4, START_MS)
    assert log.end_offset == 4
    assert [r.offset for r in read_records(log)] == [0, 1, 2]
    assert append(log, batch(1)) == 4
    assert read_offsets(log) == [0, 1, 2, 4]


def test_truncating_a_base_keeps_its_segment_empty():
    log = filled(10)
    log.truncate_to(5, START_MS)
    assert bases(log) == [0, 5]
    assert append(log, batch(1)) == 5


def test_truncating_below_the_first_base_begins_anew_there():
    log = new_log()
    log.truncate_fully(10, START_MS)
    append(log, batch(1))
    assert log.truncate_to(4, START_MS)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (4, 4, 4)
    assert bases(log) == [4]
    assert not log.leader_epochs.entries
    assert append(log, batch(2)) == 4


def test_after_full_truncation_the_same_offsets_can_be_appended():
    log = filled(8)
    log.truncate_fully(0, START_MS)
    assert not log.producers.entries
    for number in range(8):
        assert append(log, batch(1, ts=START_MS + number)) == number
    assert read_offsets(log) == list(range(8))


# --- delete records


@pytest.mark.parametrize(("offset", "left"), [(1, 3), (6, 2), (14, 1)])
def test_delete_records_moves_the_start_and_drops_whole_segments(offset, left):
    log = filled(15)
    assert log.delete_records(offset) == offset
    log.delete_old_segments(START_MS)
    assert len(bases(log)) == left
    assert read_offsets(log) == list(range(offset, 15))
    with pytest.raises(OffsetOutOfRange):
        log.read(offset - 1, 100, 15)


def test_delete_records_to_the_high_watermark_and_not_beyond():
    log = filled(6)
    log.set_high_watermark(4)
    for bad in (5, -2):
        with pytest.raises(OffsetOutOfRange):
            log.delete_records(bad)
    assert log.delete_records(-1) == 4
    assert log.delete_records(2) == 4
    assert log.leader_epochs.entries == [(1, 4)]


@pytest.mark.parametrize(("number", "offline"), [(28, False), (5, True)])
def test_delete_records_on_a_disk_that_fails_is_a_storage_error(number, offline):
    files = SimFileSystem()
    log = new_log(files=files)
    for _ in range(6):
        append(log, batch(1))
    files.fail_next("append", number, "leader-epoch-checkpoint")
    with pytest.raises(StorageFailed) as caught:
        log.delete_records(4)
    assert caught.value.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert (caught.value.offline, log.directory.offline) == (offline, offline)
    assert log.start_offset == 4
    assert log.directory.starts_moved  # so that the next checkpoint has it


def test_a_compacted_topic_refuses_delete_records():
    log = new_log(LogConfig(cleanup_policy=("compact",)))
    append(log, batch(1, key=b"k"))
    with pytest.raises(StorageError) as caught:
        log.delete_records(1)
    assert caught.value.error is ErrorCode.POLICY_VIOLATION


def test_producers_outlive_the_deletion_of_their_records():
    log = filled(6)
    log.delete_records(-1)
    assert append(log, batch(1, producer=2, epoch=0, sequence=6)) == 6

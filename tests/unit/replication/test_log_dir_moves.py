"""The steps of a move: copying follows the log whatever happens to it, and ends when nothing is missing."""

from __future__ import annotations

import errno

import pytest

from protocol.errors import ErrorCode
from storage.errors import AppendRefused, StorageFailed
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.cleaning import clean_log
from tests.support.logs import (
    TOPIC_ID,
    FixedClock,
    append,
    batch,
    checked,
    open_manager,
    read_offsets,
    read_records,
)
from tests.support.moves import begin_move, change_over, copy_some, hosted

ONE = len(batch(1))


class Moving:
    def __init__(self, batches=5, **config):
        self.files, self.clock = SimFileSystem(), FixedClock()
        self.config = LogConfig(**{"segment_bytes": 3 * ONE, **config})
        self.open()
        self.log = self.manager.get_or_create("t", 0, TOPIC_ID)
        for _ in range(batches):
            append(self.log, batch(1))
        self.partition = hosted(self.log)

    def open(self):
        self.manager = open_manager(self.files, ("/a", "/b"), self.config, self.clock)

    def begin(self):
        return begin_move(self.manager, self.partition, self.manager.dirs[1], self.clock)

    def restart(self):
        self.manager.abandon()
        self.open()
        self.log = self.manager.get("t", 0)
        self.partition = hosted(self.log)


def test_the_copy_has_the_same_batches_offsets_and_times():
    moving = Moving(0)
    for count in (1, 3, 2, 7):
        append(moving.log, batch(count, ts=1000 + count), epoch=count)
    before = read_records(moving.log)
    epochs = moving.log.leader_epochs.entries
    change_over(moving.begin())
    assert moving.partition.log is not moving.log
    assert read_records(moving.partition.log) == before
    assert moving.partition.log.leader_epochs.entries == epochs
    assert moving.partition.log.high_watermark == 13


def test_a_piece_is_one_batch_at_least_and_the_lag_shrinks():
    moving = Moving()
    move = moving.begin()
    lags = []
    while copy_some(move, 1):
        lags.append(moving.log.end_offset - move.future.end_offset)
    assert lags == [4, 3, 2, 1, 0]
    assert move.future.high_watermark == 5


def test_what_is_written_meanwhile_is_copied_too():
    moving = Moving()
    move = moving.begin()
    copy_some(move)
    append(moving.log, batch(4))
    job, write = move.prepare()
    job.run()
    write()
    job.finish()
    append(moving.log, batch(1))
    assert not move.ready()
    assert move.catch_up()
    assert move.ready()
    move.finish()()
    assert read_offsets(moving.partition.log) == list(range(10))


def test_staged_batches_are_waited_for():
    moving = Moving()
    move = moving.begin()
    while copy_some(move):
        pass
    move.prepare()
    moving.partition.append(checked(batch(1)), 1, 0)
    assert not move.ready()
    assert not move.insist()
    moving.partition.write_pending()
    assert move.catch_up()


def test_much_that_is_missing_is_not_copied_on_the_loop():
    moving = Moving(0, segment_bytes=1 << 30)
    for _ in range(5):
        append(moving.log, batch(1, size=100_000))
    move = moving.begin()
    assert not move.catch_up()
    assert 0 < move.future.end_offset < 5
    while copy_some(move):
        pass
    append(moving.log, batch(1, size=50_000))
    append(moving.log, batch(1))
    assert move.catch_up()


def test_what_was_synced_in_the_log_is_synced_in_the_copy_first():
    moving = Moving(segment_bytes=1 << 30)
    move = moving.begin()
    while copy_some(move):
        pass
    move.prepare()
    moving.log.flush()
    assert move.catch_up()
    assert not move.ready()
    assert move.insist()
    assert move.future.recovery_point == 5


def test_a_log_that_begins_late_and_within_a_batch():
    moving = Moving(2)
    append(moving.log, batch(4))
    moving.log.delete_records(4)
    move = moving.begin()
    change_over(move)
    assert moving.partition.log.start_offset == 4
    assert read_offsets(moving.partition.log) == [4, 5]


def test_records_that_are_deleted_meanwhile_are_deleted_in_the_copy():
    moving = Moving()
    move = moving.begin()
    copy_some(move)
    moving.log.delete_records(3)
    copy_some(move)
    assert move.future.start_offset == 3
    job, write = move.prepare()
    job.run()
    write()
    job.finish()
    moving.log.delete_records(4)
    assert move.catch_up()
    assert not move.ready()  # this start is on no disk yet
    change_over(move)
    assert (moving.partition.log.start_offset, read_offsets(moving.partition.log)) == (4, [4])


def test_gaps_of_compaction_are_kept_also_at_the_end():
    moving = Moving(0, cleanup_policy=("compact",), segment_bytes=2 * ONE + 20)
    for _ in range(4):
        append(moving.log, batch(1, key=b"k"))
    moving.log.roll(0)
    moving.log.flush()
    clean_log(moving.manager, moving.log, moving.clock)
    kept = read_offsets(moving.log)
    assert kept == [3]
    change_over(moving.begin())
    assert (moving.partition.log.end_offset, read_offsets(moving.partition.log)) == (4, kept)
    assert append(moving.partition.log, batch(1, key=b"k")) == 4


def test_an_empty_log_that_does_not_begin_at_zero():
    moving = Moving(3)
    moving.log.truncate_fully(7, 0)
    change_over(moving.begin())
    log = moving.partition.log
    assert (log.start_offset, log.end_offset, log.local.segments.first.base_offset) == (7, 7, 7)


def test_a_gap_at_the_end_of_the_log_is_no_record_missing():
    moving = Moving(4, segment_bytes=1 << 30)
    append(moving.log, batch(3))
    moving.log.truncate_to(6, 0)  # within the last batch: the log ends at 6, its last batch at 3
    moving.log.set_high_watermark(6)
    change_over(moving.begin())
    assert moving.partition.log.end_offset == 6
    assert append(moving.partition.log, batch(1)) == 6


def test_a_copy_with_more_than_its_log_is_cut_when_it_goes_on():
    moving = Moving()
    move = moving.begin()
    while copy_some(move):
        pass
    moving.manager.close()
    moving.open()
    moving.log = moving.manager.get("t", 0)
    moving.log.truncate_to(2, 0)  # as a power cut may leave it
    append(moving.log, batch(1, size=21), epoch=1)
    moving.partition = hosted(moving.log)
    change_over(moving.begin())
    assert [len(record.value) for record in read_records(moving.partition.log)] == [20, 20, 21]


def test_a_copy_without_an_epoch_in_common_begins_anew():
    moving = Moving(3)
    move = moving.begin()
    while copy_some(move):
        pass
    moving.log.truncate_fully(0, 0)
    append(moving.log, batch(1, size=21), epoch=3)
    moving.partition = hosted(moving.log)
    again = moving.begin()
    assert again.future.end_offset == 0
    change_over(again)
    assert [len(record.value) for record in read_records(moving.partition.log)] == [21]


def test_damage_in_the_log_ends_the_move_and_not_the_directory():
    moving = Moving(segment_bytes=1 << 30)
    moving.manager.close()
    handle = moving.files.open("/a/t-0/00000000000000000000.log")
    handle.write_at(2 * ONE + 70, b"\xff\xff")
    moving.open()
    moving.log = moving.manager.get("t", 0)
    moving.partition = hosted(moving.log)
    move = moving.begin()
    copy_some(move)
    copy_some(move)
    with pytest.raises(AppendRefused) as refused:
        copy_some(move)
    assert refused.value.error == ErrorCode.CORRUPT_MESSAGE
    assert not any(directory.offline for directory in moving.manager.dirs)


def test_a_full_disk_cuts_the_copy_back_and_it_goes_on_later():
    moving = Moving(segment_bytes=1 << 30)
    move = moving.begin()
    copy_some(move)
    moving.files.fail_next("append", errno.ENOSPC, "-future/0", written_bytes=10)
    with pytest.raises(StorageFailed) as full:
        copy_some(move)
    assert not full.value.offline
    assert not move.is_over()
    change_over(move)
    assert read_offsets(moving.partition.log) == [0, 1, 2, 3, 4]


def test_a_disk_that_fails_under_the_copy_ends_the_move_and_the_log_is_served():
    moving = Moving(segment_bytes=1 << 30)
    move = moving.begin()
    moving.files.fail_next("append", errno.EIO, "-future/0")
    with pytest.raises(StorageFailed):
        copy_some(move)
    assert move.is_over()
    assert append(moving.log, batch(1)) == 5


def test_a_move_is_over_when_it_is_called_off_and_when_the_partition_goes():
    moving = Moving()
    move = moving.begin()
    assert not move.is_over()
    moving.manager.futures.drop("t", 0)
    assert move.is_over()
    move = moving.begin()
    moving.partition.retire()
    assert move.is_over()

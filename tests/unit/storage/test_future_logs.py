"""Copies on their way to another log directory: KIP-113, storage.md 1.2."""

from __future__ import annotations

import errno

import pytest

from storage.errors import StorageFailed
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import (
    TOPIC_ID,
    FixedClock,
    append,
    batch,
    checked,
    facts,
    marker,
    open_manager,
    read_offsets,
)
from tests.support.moves import begin_move, change_over, copy_some, hosted

PATHS = ("/a", "/b")
ONE = len(batch(1))


class Moving:
    """A partition of five batches in /a on its way to /b."""

    def __init__(self, files=None, **config):
        self.files = files or SimFileSystem()
        self.clock = FixedClock()
        self.config = LogConfig(segment_bytes=2 * ONE, **config)
        self.open()
        log = self.manager.get_or_create("t", 0, TOPIC_ID)
        for _ in range(5):
            append(log, batch(1))
        self.partition = hosted(log)

    def open(self, files=None):
        self.files = files or self.files
        self.manager = open_manager(self.files, PATHS, self.config, self.clock)

    def begin(self):
        return begin_move(self.manager, self.partition, self.manager.dirs[1], self.clock)

    def names(self, path):
        return [name for name in self.files.list_dir(path) if name.startswith("t-0")]


def test_a_copy_lies_in_a_future_directory_and_is_dropped_with_the_usual_delay():
    moving = Moving()
    future = moving.manager.futures.create(moving.partition.log, moving.manager.dirs[1])
    [name] = moving.names("/b")
    assert name.startswith("t-0.")
    assert name.endswith("-future")
    assert len(name) == len("t-0.") + 32 + len("-future")
    assert future.topic_id == TOPIC_ID
    assert list(moving.manager.futures) == [future]
    moving.manager.futures.drop("t", 0)
    assert len(moving.manager.futures) == 0
    [gone] = moving.names("/b")
    assert gone.endswith("-delete")
    moving.clock.ms += 60_000
    for remove in moving.manager.take_doomed():
        remove()
    assert moving.names("/b") == []
    moving.manager.futures.drop("t", 0)  # again: nothing to do


def test_the_change_over_is_two_renames():
    moving = Moving()
    move = moving.begin()
    change_over(move)
    assert moving.names("/b") == ["t-0"]
    [gone] = moving.names("/a")
    assert gone.endswith("-delete")
    log = moving.manager.get("t", 0)
    assert log is moving.partition.log is move.future
    assert log.local.directory == "/b/t-0"
    assert len(moving.manager.futures) == 0
    assert (len(moving.manager.dirs[0].logs), len(moving.manager.dirs[1].logs)) == (0, 1)
    assert read_offsets(log) == [0, 1, 2, 3, 4]
    assert not moving.files.exists("/b/t-0/moved-here")


def test_the_moved_log_goes_on_and_is_found_after_a_stop_and_after_a_kill():
    for stop in ("close", "abandon"):
        moving = Moving()
        change_over(moving.begin())
        log = moving.partition.log
        for _ in range(3):
            append(log, batch(1, producer=5, epoch=0, sequence=log.end_offset))
        append(log, batch(1), epoch=4)
        getattr(moving.manager, stop)()
        moving.open()
        log = moving.manager.get("t", 0)
        assert log.local.directory == "/b/t-0"
        assert read_offsets(log) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
        assert log.producers.entries[5].last_offset == 7
        assert log.leader_epochs.entries == [(0, 0), (4, 8)]


def test_producers_guards_and_transactions_go_along():
    moving = Moving()
    log = moving.partition.log
    for sequence in range(4):
        append(log, batch(1, producer=3, epoch=0, sequence=sequence))
    append(log, batch(1, producer=8, epoch=0, sequence=0, transactional=True))
    append(log, marker(8, 0, commit=False))
    append(log, batch(1, producer=9, epoch=0, sequence=0, transactional=True))
    guard = log.start_verification(11, 0, 0, False, 0)
    before = [facts(entry) for entry in log.producers.entries.values()]
    aborted, stable = log.aborted(0, log.end_offset), log.last_stable_offset
    change_over(moving.begin())
    moved = moving.partition.log
    assert moved is not log
    assert [facts(entry) for entry in moved.producers.entries.values()] == before
    assert moved.start_verification(11, 0, 0, False, 0) is guard
    assert moved.aborted(0, moved.end_offset) == aborted != []
    assert moved.last_stable_offset == stable == 11
    duplicate = moved.append_as_leader(checked(batch(1, producer=3, epoch=0, sequence=1)), 0, 0)
    assert duplicate.duplicate
    assert duplicate.base_offset == 6


def test_what_the_cleaner_knows_goes_along():
    moving = Moving(cleanup_policy=("compact",))
    source, destination = moving.manager.dirs
    source.clean_offsets.set(("t", 0), 2)
    change_over(moving.begin())
    assert source.clean_offsets.get(("t", 0)) is None
    assert destination.clean_offsets.get(("t", 0)) == 2


def test_checkpoints_of_both_directories_follow():
    moving = Moving()
    move = moving.begin()
    while copy_some(move):
        pass
    moving.partition.log.delete_records(3)
    change_over(move)
    for directory in moving.manager.dirs:
        forget = directory.forget_gone()
        if forget is not None:
            forget()
    source, destination = moving.manager.dirs
    assert source.offsets("recovery-point-offset-checkpoint") == {}
    assert destination.offsets("log-start-offset-checkpoint") == {("t", 0): 3}
    moving.manager.abandon()
    moving.open()
    assert moving.manager.get("t", 0).start_offset == 3


def test_a_copy_is_found_again_and_goes_on():
    moving = Moving()
    move = moving.begin()
    copy_some(move)
    copy_some(move)
    moving.manager.abandon()
    moving.open()
    assert moving.manager.get("t", 0).local.directory == "/a/t-0"
    assert moving.manager.futures.get("t", 0).end_offset == 2
    moving.partition = hosted(moving.manager.get("t", 0))
    change_over(moving.begin())
    assert read_offsets(moving.manager.get("t", 0)) == [0, 1, 2, 3, 4]


def test_a_kill_between_the_renames_is_made_good():
    moving = Moving()
    move = moving.begin()
    while copy_some(move):
        pass
    job, write = move.prepare()
    job.run()
    write()
    job.finish()
    moving.files.fail_next("rename", errno.EIO, "/a/t-0")
    move.finish()()
    assert moving.manager.dirs[0].offline
    assert moving.names("/a") == moving.names("/b") == ["t-0"]
    append(moving.partition.log, batch(1))
    moving.manager.abandon()
    moving.open()
    assert read_offsets(moving.manager.get("t", 0)) == [0, 1, 2, 3, 4, 5]
    assert moving.names("/a")[0].endswith("-delete")
    assert not moving.files.exists("/b/t-0/moved-here")


def test_while_the_old_directory_is_away_the_mark_stays():
    moving = Moving()
    change_over(moving.begin())
    moving.files.open("/b/t-0/moved-here", create=True)
    moving.manager.abandon()
    moving.files.fail_next("make_dirs", errno.EIO, "/a")
    moving.open()
    assert moving.manager.dirs[0].offline
    assert moving.files.exists("/b/t-0/moved-here")
    moving.manager.abandon()
    moving.open()
    assert not moving.files.exists("/b/t-0/moved-here")


def test_a_copy_that_cannot_be_renamed_leaves_the_log_where_it_is():
    moving = Moving()
    move = moving.begin()
    while copy_some(move):
        pass
    job, write = move.prepare()
    job.run()
    write()
    job.finish()
    moving.files.fail_next("rename", errno.EIO, "-future")
    with pytest.raises(StorageFailed):
        move.finish()
    assert [directory.offline for directory in moving.manager.dirs] == [False, True]
    assert moving.partition.log.local.directory == "/a/t-0"
    assert append(moving.partition.log, batch(1)) == 5
    assert move.is_over()


def test_a_copy_that_is_all_that_is_left_becomes_the_partition_once_no_directory_is_away():
    moving = Moving()
    move = moving.begin()
    while copy_some(move):
        pass
    moving.manager.close()
    moving.files.remove_tree("/a/t-0")
    moving.files.fail_next("make_dirs", errno.EIO, "/a")
    moving.open()
    assert moving.manager.get("t", 0) is None
    assert len(moving.manager.futures) == 1
    moving.manager.close()
    moving.open()
    log = moving.manager.get("t", 0)
    assert log.local.directory == "/b/t-0"
    assert read_offsets(log) == [0, 1, 2, 3, 4]
    assert moving.manager.unclean


def test_a_copy_of_an_older_topic_is_dropped():
    moving = Moving()
    moving.begin()
    moving.manager.get("t", 0).assign_topic_id(bytes(range(2, 18)))
    moving.manager.close()
    moving.open()
    assert len(moving.manager.futures) == 0
    assert moving.names("/b")[0].endswith("-delete")


def test_with_the_partition_its_copy_is_deleted():
    moving = Moving()
    moving.begin()
    moving.manager.delete("t", 0)
    assert len(moving.manager.futures) == 0
    assert [name[-7:] for path in PATHS for name in moving.names(path)] == ["-delete"] * 2


def test_a_failed_disk_keeps_its_copies_as_they_lie():
    moving = Moving()
    move = moving.begin()
    copy_some(move)
    moving.manager.dirs[1].fail(OSError(errno.EIO, "gone"))
    assert move.is_over()
    assert move.future.closed
    assert len(moving.manager.futures) == 0
    assert moving.names("/b")[0].endswith("-future")
    assert append(moving.partition.log, batch(1)) == 5
    with pytest.raises(StorageFailed):
        moving.manager.futures.create(moving.partition.log, moving.manager.dirs[1]).check_online()


def test_a_full_disk_takes_no_copy_and_stays_online():
    moving = Moving()
    moving.files.fail_next("make_dirs", errno.ENOSPC, "-future")
    with pytest.raises(StorageFailed) as full:
        moving.manager.futures.create(moving.partition.log, moving.manager.dirs[1])
    assert not full.value.offline
    assert not moving.manager.dirs[1].offline
    moving.files.fail_next("make_dirs", errno.EIO, "-future")
    with pytest.raises(StorageFailed) as failed:
        moving.manager.futures.create(moving.partition.log, moving.manager.dirs[1])
    assert failed.value.offline


def test_a_copy_that_had_everything_takes_over_at_the_next_start():
    for lost in (0, 2):
        moving = Moving()
        move = moving.begin()
        while copy_some(move):
            pass
        job, write = move.prepare()
        job.run()
        write()
        if lost:  # what a power cut takes from a log that was not synced
            moving.partition.log.truncate_to(5 - lost, 0)
        moving.manager.abandon()
        moving.open()
        log = moving.manager.get("t", 0)
        assert log.local.directory == "/b/t-0"
        assert read_offsets(log) == [0, 1, 2, 3, 4]
        assert not moving.files.exists("/b/t-0/moved-here")
        assert moving.names("/a")[0].endswith("-delete")


def test_a_copy_that_has_less_than_its_log_goes_on_copying():
    moving = Moving()
    move = moving.begin()
    while copy_some(move):
        pass
    job, write = move.prepare()
    job.run()
    write()
    append(moving.partition.log, batch(1))
    moving.manager.abandon()
    moving.open()
    assert moving.manager.get("t", 0).local.directory == "/a/t-0"
    assert len(moving.manager.futures) == 1

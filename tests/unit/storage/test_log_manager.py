import errno

import pytest

from protocol.uuids import ZERO_UUID
from runtime.entropy import SeededRandom
from runtime.os_files import OsFileSystem
from storage import log_manager
from storage.errors import DirectoryLocked, InconsistentDirectory, StorageFailed
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from tests.simulation.files import SimFileSystem
from tests.support.logs import (
    CLUSTER,
    START_MS,
    TOPIC_ID,
    FixedClock,
    append,
    batch,
    open_manager,
    read_offsets,
)

ONE = len(batch(1))


def test_partitions_go_to_the_directory_with_the_fewest():
    manager = open_manager(SimFileSystem(), ("/a", "/b", "/c"))
    for index in range(7):
        manager.get_or_create("t", index, TOPIC_ID)
    assert sorted(len(directory.logs) for directory in manager.dirs) == [2, 2, 3]
    assert len(manager) == 7
    assert [log.partition for log in manager] == list(range(7))


def test_a_directory_that_does_not_take_one_is_passed_over():
    files = SimFileSystem()
    manager = open_manager(files, ("/a", "/b"))
    files.fail_next("make_dirs", errno.EACCES, "/a/t-0")
    assert manager.get_or_create("t", 0, TOPIC_ID).directory.path == "/b"
    assert manager.dirs[0].offline  # as in Kafka; a full one stays
    manager = open_manager(SimFileSystem(), ("/a", "/b"))
    files = manager.files
    for path in ("/a/", "/b/"):
        files.fail_next("make_dirs", errno.ENOSPC, path)
    with pytest.raises(StorageFailed):
        manager.get_or_create("t", 1, TOPIC_ID)
    assert manager.get("t", 1) is None
    assert len(manager.online_dirs()) == 2


def test_what_may_lie_in_an_offline_directory_is_not_made_in_another():
    manager = open_manager(SimFileSystem(), ("/a", "/b"))
    manager.dirs[1].fail(OSError(errno.EIO, "Input/output error"))
    with pytest.raises(StorageFailed):
        manager.get_or_create("t", 0, TOPIC_ID, is_new=False)
    assert manager.get("t", 0) is None
    assert manager.get_or_create("t", 0, TOPIC_ID).directory.path == "/a"


def test_everything_is_found_again_in_all_directories():
    files = SimFileSystem()
    manager = open_manager(files, ("/a", "/b"))
    for index in range(5):
        append(manager.get_or_create("x.y-z", index, TOPIC_ID), batch(index + 1))
    manager.close(broker_epoch=77)
    assert files.read_bytes("/a/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":77}'
    again = open_manager(files, ("/a", "/b"))
    assert not again.unclean
    assert [again.get("x.y-z", index).end_offset for index in range(5)] == [1, 2, 3, 4, 5]
    assert again.get("x.y-z", 0).topic_id == TOPIC_ID
    assert not files.exists("/a/.kafka_cleanshutdown")


@pytest.mark.parametrize("apart", ["one volume", "file by file", "no such call"])
def test_what_a_clean_stop_closed_survives_a_power_cut(monkeypatch, apart):
    monkeypatch.setattr(log_manager, "SYNCED_APART_MAX", 100 if apart == "file by file" else 2)
    files = SimFileSystem()
    if apart == "no such call":
        monkeypatch.setattr(files, "sync_volume", lambda path: False)
    manager = open_manager(files)
    for index in range(5):
        append(manager.get_or_create("t", index, TOPIC_ID), batch(index + 1, producer=7, epoch=0, sequence=0))
    manager.get_or_create("empty", 0, TOPIC_ID)
    manager.close()
    again = open_manager(files.crash())
    assert not again.unclean
    assert [again.get("t", index).end_offset for index in range(5)] == [1, 2, 3, 4, 5]
    assert [again.get("t", index).recovery_point for index in range(5)] == [1, 2, 3, 4, 5]
    assert [list(again.get("t", index).producers.entries) for index in range(5)] == [[7]] * 5
    assert again.get("t", 4).topic_id == TOPIC_ID


def test_a_volume_that_cannot_be_synced_is_not_called_clean(monkeypatch):
    monkeypatch.setattr(log_manager, "SYNCED_APART_MAX", 2)
    files = SimFileSystem()
    manager = open_manager(files)
    for index in range(5):
        append(manager.get_or_create("t", index, TOPIC_ID), batch(1))
    files.fail_next("sync_volume", errno.EIO, "/logs")
    manager.close()
    assert manager.dirs[0].offline
    assert not files.exists("/logs/.kafka_cleanshutdown")
    again = open_manager(files)
    assert again.unclean
    assert [again.get("t", index).end_offset for index in range(5)] == [1] * 5


def test_an_unclean_stop_is_reported():
    files = SimFileSystem()
    manager = open_manager(files)
    assert not manager.unclean
    append(manager.get_or_create("t", 0, TOPIC_ID), batch(1))
    manager.abandon()
    again = open_manager(files)
    assert again.unclean
    assert read_offsets(again.get("t", 0)) == [0]
    again.close()
    assert not open_manager(files).unclean


def test_a_partition_in_two_directories_is_fatal():
    files = SimFileSystem()
    open_manager(files, ("/a",)).get_or_create("t", 0, TOPIC_ID)
    files.make_dirs("/b/t-0")
    files.remove("/a/.lock")
    manager = LogManager(files.crash(), FixedClock(), SeededRandom(b""), ["/a"], lambda topic: LogConfig())
    assert len(manager) == 0
    fresh = SimFileSystem()
    for path in ("/a/t-0", "/b/t-0"):
        fresh.make_dirs(path)
    with pytest.raises(InconsistentDirectory, match="Duplicate log directories for t-0"):
        open_manager(fresh, ("/a", "/b"))


def test_what_is_no_partition_stops_the_start_and_known_foreigners_do_not():
    files = SimFileSystem()
    for name in ("remote-log-index-cache", "__cluster_metadata-0", "t-0"):
        files.make_dirs(f"/logs/{name}")
    files.open("/logs/bootstrap.checkpoint", create=True)
    files.open("/logs/just-a-file", create=True)
    manager = open_manager(files)
    assert [log.name for log in manager] == ["t-0"]
    manager.close()
    files.make_dirs("/logs/lost+found")
    with pytest.raises(InconsistentDirectory, match=r"lost\+found"):
        open_manager(files)


def test_two_managers_on_one_directory(tmp_path):
    path = str(tmp_path / "logs")
    files = OsFileSystem()
    first = open_manager(files, (path,))
    with pytest.raises(DirectoryLocked):
        open_manager(files, (path,))
    first.close()
    open_manager(files, (path,)).close()


def test_a_directory_copied_under_two_paths_is_refused():
    files = SimFileSystem()
    open_manager(files, ("/a",)).close()
    files.make_dirs("/b")
    files.write_atomic("/b/meta.properties", files.read_bytes("/a/meta.properties"))
    with pytest.raises(InconsistentDirectory, match=r"same directory\.id"):
        open_manager(files, ("/a", "/b"))


def test_deletion_renames_at_once_and_removes_after_the_delay():
    files, clock = SimFileSystem(), FixedClock()
    manager = open_manager(files, clock=clock)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    append(log, batch(1))
    region = log.read(0, 100, 1)
    manager.delete("t", 0)
    manager.delete("t", 0)
    assert manager.get("t", 0) is None
    (name,) = [n for n in files.list_dir("/logs") if n.endswith("-delete")]
    assert name.startswith("t-0.")
    assert not files.exists("/logs/t-0")
    with pytest.raises(StorageFailed):
        append(log, batch(1))
    assert region.length
    assert manager.take_doomed() == []
    clock.ms += 60_000
    for job in manager.take_doomed():
        job()
    assert not files.exists(f"/logs/{name}")


def test_a_recreated_topic_begins_empty_and_leftovers_are_removed_after_a_restart():
    files, clock = SimFileSystem(), FixedClock()
    manager = open_manager(files, clock=clock)
    append(manager.get_or_create("t", 0, TOPIC_ID), batch(1, producer=3, epoch=0, sequence=5))
    manager.delete("t", 0)
    log = manager.get_or_create("t", 0, bytes(range(2, 18)))
    assert (log.end_offset, log.producers.entries) == (0, {})
    manager.close()
    again = open_manager(files, clock=clock)
    assert [each.name for each in again] == ["t-0"]
    clock.ms += 60_000
    for job in again.take_doomed():
        job()
    assert not [n for n in files.list_dir("/logs") if n.endswith("-delete")]


def test_a_deleted_partition_without_segments_is_loaded_without_an_error():
    """storage.md 71."""
    files = SimFileSystem()
    files.make_dirs(f"/logs/t-0.{'ab' * 16}-delete")
    manager = open_manager(files)
    assert len(manager) == 0
    assert not manager.dirs[0].offline


def test_a_log_of_an_older_topic_is_kept_as_stray():
    files = SimFileSystem()
    manager = open_manager(files)
    append(manager.get_or_create("t", 0, TOPIC_ID), batch(3))
    log = manager.get_or_create("t", 0, bytes(range(2, 18)))
    assert log.end_offset == 0
    (stray,) = [n for n in files.list_dir("/logs") if n.endswith("-stray")]
    assert files.size(f"/logs/{stray}/00000000000000000000.log") == len(batch(3))
    manager.close()
    assert [each.end_offset for each in open_manager(files)] == [0]


def test_a_log_without_a_topic_id_gets_the_one_it_is_asked_for():
    files = SimFileSystem()
    manager = open_manager(files)
    log = manager.get_or_create("t", 0, ZERO_UUID)
    assert not files.exists("/logs/t-0/partition.metadata")
    config = LogConfig(segment_bytes=1000)
    assert manager.get_or_create("t", 0, TOPIC_ID, config) is log
    assert log.topic_id == TOPIC_ID
    assert log.config is config
    manager.close()
    assert open_manager(files).get("t", 0).topic_id == TOPIC_ID


def test_start_offsets_survive_a_kill_after_they_were_persisted():
    files = SimFileSystem()
    manager = open_manager(files)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    append(log, batch(1))
    append(log, batch(1))
    log.delete_records(1)
    manager.persist_log_starts()
    assert files.read_bytes("/logs/log-start-offset-checkpoint") == b"0\n1\nt 0 1\n"
    manager.abandon()
    again = open_manager(files).get("t", 0)
    assert (again.start_offset, read_offsets(again)) == (1, [1])


def test_a_full_disk_keeps_old_checkpoints_and_a_failing_one_is_taken_out_of_service():
    files = SimFileSystem()
    manager = open_manager(files)
    append(manager.get_or_create("t", 0, TOPIC_ID), batch(1))
    manager.checkpoint_high_watermarks()
    before = files.read_bytes("/logs/replication-offset-checkpoint")
    append(manager.get("t", 0), batch(1))
    files.fail_next("append", errno.ENOSPC, "replication-offset-checkpoint")
    manager.checkpoint_high_watermarks()
    assert not manager.dirs[0].offline
    assert files.read_bytes("/logs/replication-offset-checkpoint") == before
    files.fail_next("append", errno.EIO, "replication-offset-checkpoint")
    manager.checkpoint_high_watermarks()
    assert manager.dirs[0].offline


def test_segments_below_the_start_go_with_their_snapshots():
    files, clock = SimFileSystem(), FixedClock()
    manager = open_manager(files, config=LogConfig(segment_bytes=2 * ONE), clock=clock)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for _ in range(7):
        append(log, batch(1))
    log.delete_records(5)
    assert sum(manager.delete_old_segments()) == 2
    names = files.list_dir("/logs/t-0")
    assert [n for n in names if n.endswith(".snapshot")] == [
        "00000000000000000004.snapshot",
        "00000000000000000006.snapshot",
    ]
    assert "00000000000000000000.log.deleted" in names
    assert "00000000000000000000.log" not in names
    clock.ms += 60_000
    for job in manager.take_doomed():
        job()
    assert not [n for n in files.list_dir("/logs/t-0") if n.endswith(".deleted")]


def test_background_syncs_move_the_recovery_point():
    files = SimFileSystem()
    manager = open_manager(files, config=LogConfig(segment_bytes=2 * ONE))
    jobs = []
    manager.on_flush_job(jobs.append)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for _ in range(5):
        append(log, batch(1))
    assert (log.recovery_point, len(jobs)) == (0, 2)
    for job in jobs:
        job.run()
        job.finish()
    assert log.recovery_point == 4
    manager.dirs[0].write_recovery_points()
    after = open_manager(files.crash(), config=LogConfig(segment_bytes=2 * ONE)).get("t", 0)
    assert read_offsets(after) == [0, 1, 2, 3]


def test_a_failed_background_sync_takes_the_directory_offline_and_the_others_serve():
    files = SimFileSystem()
    manager = open_manager(files, ("/a", "/b"), LogConfig(segment_bytes=2 * ONE))
    jobs, failed = [], []
    manager.on_flush_job(jobs.append)
    manager.on_failure = failed.append
    first, second = (manager.get_or_create("t", n, TOPIC_ID) for n in range(2))
    for log in (first, second):
        for _ in range(3):
            append(log, batch(1))
    jobs[0].finish(OSError(errno.EIO, "broken"))
    assert [directory.path for directory in failed] == [first.directory.path]
    with pytest.raises(StorageFailed):
        append(first, batch(1))
    assert append(second, batch(1)) == 3
    manager.checkpoint_high_watermarks()
    manager.close()
    assert not files.exists(f"{first.directory.path}/.kafka_cleanshutdown")
    assert files.exists(f"{second.directory.path}/.kafka_cleanshutdown")


def test_a_job_for_a_deleted_log_has_nothing_to_say():
    files = SimFileSystem()
    manager = open_manager(files, config=LogConfig(segment_bytes=2 * ONE))
    jobs = []
    manager.on_flush_job(jobs.append)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for _ in range(3):
        append(log, batch(1))
    manager.delete("t", 0)
    jobs[0].finish(OSError(errno.ENOENT, "gone"))
    assert not log.directory.offline


def test_an_unusable_directory_is_offline_and_without_any_there_is_no_start():
    files = SimFileSystem()
    files.fail_next("make_dirs", errno.EACCES, "/a")
    manager = open_manager(files, ("/a", "/b"))
    assert [d.offline for d in manager.dirs] == [True, False]
    manager.close()
    files.fail_next("make_dirs", errno.EACCES, "/b")
    with pytest.raises(StorageFailed, match="no log directory"):
        open_manager(files, ("/b",))


def test_idle_producers_expire():
    clock = FixedClock()
    manager = open_manager(SimFileSystem(), clock=clock)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    append(log, batch(1, producer=3, epoch=0, sequence=0))
    manager.producer_settings.expiration_ms = 1000
    assert sum(manager.expire_producers()) == 0
    clock.ms = START_MS + 1001
    assert sum(manager.expire_producers()) == 1
    assert append(log, batch(1, producer=3, epoch=0, sequence=1)) == 1


def test_a_directory_of_another_cluster_stops_the_start():
    files = SimFileSystem()
    open_manager(files).close()
    manager = LogManager(files, FixedClock(), SeededRandom(b""), ["/logs"], lambda topic: LogConfig())
    with pytest.raises(InconsistentDirectory):
        manager.open(CLUSTER[::-1], 1)


def test_dirty_bytes_and_flush_ms_begin_background_syncs():
    clock = FixedClock()
    manager = open_manager(SimFileSystem(), config=LogConfig(flush_ms=1000), clock=clock)
    jobs = []
    manager.on_flush_job(jobs.append)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    manager.get_or_create("t", 1, TOPIC_ID)
    assert manager.begin_flushes() == 0
    append(log, batch(1))
    assert manager.begin_flushes(ONE) == 0
    clock.ms += 999
    assert manager.begin_flushes(ONE) == 0
    clock.ms += 1
    assert manager.begin_flushes(ONE) == 1
    append(log, batch(1))
    assert manager.begin_flushes(ONE) == 1
    for job in jobs:
        job.run()
        job.finish()
    assert log.recovery_point == 2
    assert manager.begin_flushes(0) == 0


def test_a_partition_made_again_does_not_start_with_the_offsets_of_the_old_one():
    files = SimFileSystem()
    manager = open_manager(files)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for _ in range(9):
        append(log, batch(1))
    log.delete_records(7)
    log.flush()
    for write in ("write_recovery_points", "write_log_starts", "write_high_watermarks"):
        getattr(log.directory, write)()
    manager.delete("t", 0)
    log = manager.get_or_create("t", 0, bytes(15) + b"2")
    append(log, batch(3))
    manager.abandon()
    again = open_manager(files).get("t", 0)
    assert (again.start_offset, again.end_offset, again.recovery_point) == (0, 3, 0)


def test_checkpoints_forget_logs_that_went():
    files = SimFileSystem()
    manager = open_manager(files)
    [directory] = manager.dirs
    for name in ("a", "b"):
        append(manager.get_or_create(name, 0, TOPIC_ID), batch(4))
    directory.write_high_watermarks()
    assert directory.forget_gone() is None
    manager.delete("a", 0)
    forget = directory.forget_gone()
    append(manager.get_or_create("a", 0, TOPIC_ID), batch(2))  # made and deleted again meanwhile
    directory.write_high_watermarks()
    manager.delete("a", 0)
    forget()
    assert directory.offsets("replication-offset-checkpoint") == {("a", 0): 2, ("b", 0): 4}
    directory.forget_gone()()
    assert directory.offsets("replication-offset-checkpoint") == {("b", 0): 4}
    assert not directory.gone
    assert directory.forget_gone() is None


def test_a_log_start_that_could_not_be_written_is_written_later():
    files = SimFileSystem()
    manager = open_manager(files)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    append(log, batch(4))
    log.delete_records(2)
    files.fail_next("append", errno.ENOSPC, "log-start")
    manager.persist_log_starts()
    assert log.directory.starts_moved
    assert not log.directory.offline
    manager.persist_log_starts()
    assert not log.directory.starts_moved
    assert log.directory.offsets("log-start-offset-checkpoint") == {("t", 0): 2}


def test_a_directory_of_a_kafka_with_zookeeper_is_shared():
    files = SimFileSystem()
    files.make_dirs("/logs")
    files.write_atomic(
        "/logs/meta.properties", b"version=0\nbroker.id=1\ncluster.id=abcdefghijklmnopqrstuv\n"
    )
    manager = open_manager(files)
    assert manager.shared_with_kafka


def test_a_directory_with_kafkas_metadata_is_shared():
    files = SimFileSystem()
    manager = open_manager(files)
    assert not manager.shared_with_kafka
    files.make_dirs("/logs/__cluster_metadata-0")
    assert manager.shared_with_kafka
    manager.close()
    assert "__cluster_metadata-0" in files.list_dir("/logs")
    assert len(open_manager(files)) == 0


def test_what_checkpoints_say_of_logs_that_are_not_here_is_forgotten():
    files = SimFileSystem()
    manager = open_manager(files)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for _ in range(9):
        append(log, batch(1))
    log.delete_records(7)
    for write in ("write_recovery_points", "write_log_starts", "write_high_watermarks"):
        getattr(log.directory, write)()
    manager.delete("t", 0)
    manager.abandon()  # before the checkpoints were written again
    manager = open_manager(files)
    append(manager.get_or_create("t", 0, bytes(15) + b"2"), batch(3))
    manager.abandon()
    again = open_manager(files).get("t", 0)
    assert (again.start_offset, again.end_offset) == (0, 3)


def test_a_topic_id_that_does_not_get_onto_the_disk_is_a_failure_of_the_storage():
    files = SimFileSystem()
    manager = open_manager(files)
    manager.get_or_create("t", 0, ZERO_UUID)
    files.fail_next("append", errno.EIO, "partition.metadata")
    with pytest.raises(StorageFailed):
        manager.get_or_create("t", 0, TOPIC_ID)
    assert not manager.online_dirs()

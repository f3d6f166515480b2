import errno
import logging

import pytest

from protocol.uuids import ZERO_UUID, uuid_to_text
from runtime.entropy import SeededRandom
from runtime.os_files import OsFileSystem
from storage.errors import CorruptCheckpoint, DirectoryLocked, InconsistentDirectory, StorageFailed
from storage.log_config import LogConfig
from storage.log_dirs import ZOOKEEPER_META, LogDir, MetaProperties, read_meta, write_meta
from storage.log_manager import LogManager
from tests.simulation.files import SimFileSystem
from tests.support.logs import CLUSTER, TOPIC_ID, FixedClock, append, batch, open_manager

META = "/logs/meta.properties"
ID = bytes(range(1, 17))


def disk(content: bytes | None = None) -> SimFileSystem:
    files = SimFileSystem()
    files.make_dirs("/logs")
    if content is not None:
        files.write_atomic(META, content)
    return files


def test_what_is_written_is_read_by_the_same_rules():
    files = disk()
    meta = MetaProperties("we:ird=id\\", 5, ID)
    write_meta(files, META, meta)
    assert read_meta(files, META) == meta
    assert b"\nversion=1\n" in files.read_bytes(META)


def test_versions_zero_and_one():
    text = f"version=1\ncluster.id=c\nnode.id=3\ndirectory.id={uuid_to_text(ID)}\n"
    assert read_meta(disk(text.encode()), META) == MetaProperties("c", 3, ID)
    assert read_meta(disk(b"version=0\nbroker.id=4\ncluster.id=c\n"), META) == MetaProperties(
        "c", 4, ZERO_UUID
    )
    assert read_meta(disk(b"broker.id=4\n"), META) == MetaProperties("", 4, ZERO_UUID)
    assert read_meta(disk(), META) is None


@pytest.mark.parametrize(
    "content",
    [b"version=2\nnode.id=1\ncluster.id=c\n", b"version=1\nnode.id=1\n", b"version=1\ncluster.id=c\n",
     b"version=1\ncluster.id=c\nnode.id=x\n",
     b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=short\n"],
)  # fmt: skip
def test_incomplete_properties_are_damage(content):
    with pytest.raises(CorruptCheckpoint, match=r"meta\.properties"):
        read_meta(disk(content), META)


def test_a_directory_of_another_cluster_or_node_is_refused():
    files = disk()
    directory = LogDir(files, "/logs")
    directory.check_meta("cluster-a", 1, ID)
    assert directory.meta == read_meta(files, META) == MetaProperties("cluster-a", 1, ID)
    directory.check_meta("cluster-a", 1, bytes(16))
    assert directory.meta.directory_id == ID
    with pytest.raises(InconsistentDirectory, match="cluster-a"):
        directory.check_meta("cluster-b", 1, ID)
    with pytest.raises(InconsistentDirectory, match="node 1"):
        directory.check_meta("cluster-a", 2, ID)


def test_a_new_directory_of_a_cluster_with_zookeeper_has_the_properties_of_kafkas_brokers_there():
    files = disk()
    LogDir(files, "/logs").check_meta("c", 3, ID, ZOOKEEPER_META)
    lines = files.read_bytes(META).decode().split()
    assert "broker.id=3" in lines
    assert "version=0" in lines
    LogDir(files, "/logs").check_meta("c", 3, ID)
    assert read_meta(files, META).version == ZOOKEEPER_META


def test_a_missing_directory_id_is_given():
    files = disk(b"version=1\ncluster.id=c\nnode.id=3\n")
    LogDir(files, "/logs").check_meta("c", 3, ID)
    assert read_meta(files, META).directory_id == ID


def test_only_one_may_hold_a_directory_and_the_lock_file_goes_with_it():
    files = disk()
    first, second = LogDir(files, "/logs"), LogDir(files, "/logs")
    first.lock()
    with pytest.raises(DirectoryLocked, match="in use by another process"):
        second.lock()
    first.unlock()
    assert not files.exists("/logs/.lock")
    second.lock()


def test_failure_happens_once():
    directory = LogDir(disk(), "/logs")
    seen = []
    directory.on_failure = seen.append
    directory.fail(OSError(errno.EIO, "broken"))
    directory.fail(OSError(errno.EIO, "again"))
    assert seen == [directory]
    assert directory.offline
    assert directory.failure.args[1] == "broken"


def test_the_clean_marker_is_taken_for_good():
    files = disk()
    files.write_atomic("/logs/.kafka_cleanshutdown", b"")
    assert LogDir(files, "/logs").take_clean_marker()
    after = files.crash()
    assert not LogDir(after, "/logs").take_clean_marker()


def test_a_damaged_checkpoint_reads_as_empty():
    files = disk()
    files.write_atomic("/logs/recovery-point-offset-checkpoint", b"7\nrubbish")
    assert LogDir(files, "/logs").offsets("recovery-point-offset-checkpoint") == {}


def test_a_file_of_a_kafka_with_zookeeper_keeps_its_version():
    files = disk(b"version=0\nbroker.id=3\ncluster.id=c\n")
    directory = LogDir(files, "/logs")
    directory.check_meta("c", 3, ID)
    text = files.read_bytes(META)
    assert b"\nbroker.id=3\n" in text
    assert b"\nversion=0\n" in text
    assert read_meta(files, META) == MetaProperties("c", 3, ID)


def test_an_error_in_one_log_stops_all_of_its_directory_and_no_other():
    files = SimFileSystem()
    manager = open_manager(files, ("/a", "/b"))
    logs = [manager.get_or_create("t", index, TOPIC_ID) for index in range(4)]
    for log in logs:
        append(log, batch(1))
    assert [log.directory.path for log in logs] == ["/a", "/b", "/a", "/b"]
    files.fail_next("append", errno.EIO, "/a/t-0/")
    with pytest.raises(StorageFailed) as failed:
        append(logs[0], batch(1))
    assert failed.value.offline
    for log in logs[::2]:
        with pytest.raises(StorageFailed, match="is on /a, which is offline"):
            append(log, batch(1))
        with pytest.raises(StorageFailed):
            log.read(0, 100, 1)
        assert log.end_offset == 1
    assert [append(log, batch(1)) for log in logs[1::2]] == [1, 1]


def test_a_failed_directory_is_given_up_and_its_lock_with_it(tmp_path, caplog):
    files = OsFileSystem()
    paths = [str(tmp_path / name) for name in "ab"]
    manager = open_manager(files, paths)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    append(log, batch(1))
    assert files.exists(f"{paths[0]}/.lock")
    caplog.set_level(logging.WARNING, "storage")
    manager.dirs[0].fail(OSError(errno.EIO, "Input/output error"))
    assert log.closed
    assert not files.exists(f"{paths[0]}/.lock")
    assert files.exists(f"{paths[1]}/.lock")
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert lines == [
        f"Stopping serving logs in dir {paths[0]}",
        "Logs for partitions t-0 are offline and logs for future partitions  are offline due to failure on "
        f"log directory {paths[0]}",
    ]
    manager.close()
    assert not files.exists(f"{paths[0]}/.kafka_cleanshutdown")
    assert files.exists(f"{paths[1]}/.kafka_cleanshutdown")


def test_without_a_full_load_there_is_no_clean_marker():
    files = SimFileSystem()
    open_manager(files).close()
    assert files.exists("/logs/.kafka_cleanshutdown")
    manager = LogManager(files, FixedClock(), SeededRandom(b""), ["/logs"], lambda topic: LogConfig())
    manager.open(CLUSTER, 1)
    manager.dirs[0].take_clean_marker()  # as loading does first of all
    manager.close()
    assert not files.exists("/logs/.kafka_cleanshutdown")


def test_a_missing_directory_is_offline_where_others_were_used_before():
    files = SimFileSystem()
    open_manager(files, ("/a", "/b")).close()  # a new broker makes them
    files.remove_tree("/b")
    manager = open_manager(files, ("/a", "/b"))
    assert [directory.offline for directory in manager.dirs] == [False, True]
    assert "it is missing" in str(manager.dirs[1].failure)
    assert not files.exists("/b")
    manager.close()
    files.make_dirs("/b")
    assert not open_manager(files, ("/a", "/b")).dirs[1].offline

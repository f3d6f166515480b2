import errno

import pytest

from protocol.uuids import ZERO_UUID, uuid_to_text
from storage.errors import CorruptCheckpoint, DirectoryLocked, InconsistentDirectory
from storage.log_dirs import LogDir, MetaProperties, read_meta, write_meta
from tests.simulation.files import SimFileSystem

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

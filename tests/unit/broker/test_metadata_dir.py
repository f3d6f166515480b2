"""Where the metadata of a broker that is alone lies, and what keeps it from starting without it."""

from __future__ import annotations

import errno

import pytest

from broker.metadata_dir import CannotStart, MetadataDir
from runtime.entropy import SeededRandom
from storage.errors import DirectoryLocked, InconsistentDirectory
from storage.log_dirs import LogDir, lock_all, read_meta
from tests.simulation.files import SimFileSystem

STORE = "store.sqlite"


def directories(files: SimFileSystem) -> list[LogDir]:
    found = [LogDir(files, path) for path in ("/a", "/b")]
    lock_all(files, found)
    return found


def opened(files: SimFileSystem, path: str) -> MetadataDir:
    place = MetadataDir(files, path, directories(files), STORE)
    place.open()
    return place


def unlocked(files: SimFileSystem) -> SimFileSystem:
    files._locked.clear()
    return files


def test_a_log_directory_is_taken_as_it_is() -> None:
    files = SimFileSystem()
    place = opened(files, "/a")
    assert not place.is_apart
    place.check("cluster", 1, SeededRandom(b""))
    place.close()
    assert not files.exists("/a/meta.properties")
    assert files.exists("/a/.lock")
    assert place.failed(place.directory)
    assert not place.failed(LogDir(files, "/b"))


def test_one_apart_is_made_locked_and_marked() -> None:
    files = SimFileSystem()
    place = opened(files, "/m")
    assert place.is_apart
    place.check("cluster", 1, SeededRandom(b""))
    assert read_meta(files, "/m/meta.properties").cluster_id == "cluster"
    with pytest.raises(DirectoryLocked):
        MetadataDir(files, "/m", [LogDir(files, "/x"), LogDir(files, "/y")], STORE).open()
    place.close()
    assert not files.exists("/m/.lock")
    with pytest.raises(InconsistentDirectory):
        opened(unlocked(files), "/m").check("another", 1, SeededRandom(b""))


@pytest.mark.parametrize("path", ["/a", "/m"])
def test_without_its_disk_there_is_no_start(path: str) -> None:
    files = SimFileSystem()
    for each in ("/a", "/m"):
        files.fail_next("make_dirs", errno.EIO, each)
    with pytest.raises(CannotStart, match=f"{path}, fails"):
        opened(files, path)


def test_a_missing_one_is_not_made_anew_beside_logs() -> None:
    files = SimFileSystem()
    for directory in directories(files):
        directory.check_meta("cluster", 1, bytes(range(1, 17)))
    with pytest.raises(CannotStart, match="it is missing"):
        opened(unlocked(files), "/m")


def test_metadata_that_lies_elsewhere_is_not_begun_anew() -> None:
    files = SimFileSystem()
    directories(files)
    files.open(f"/a/{STORE}", create=True)
    with pytest.raises(CannotStart, match="move that file there"):
        opened(unlocked(files), "/m")

"""Subdirectories of log directories, and two of one partition: storage.md 1.3, 1.10."""

from __future__ import annotations

import errno

import pytest

from runtime.entropy import SeededRandom
from storage.errors import InconsistentDirectory
from storage.log_dirs import LogDir
from storage.partition_dirs import find_all
from tests.simulation.files import SimFileSystem

UNIQUE = "0" * 32


def disk(*dirs):
    files = SimFileSystem()
    for name in dirs:
        files.make_dirs(name)
    return files


def find(files):
    directories = [LogDir(files, path) for path in ("/a", "/b")]
    found = find_all(files, SeededRandom(b"ids"), directories)
    return {directory.path: sorted(name for name, _ in names) for directory, names in found}


def test_partitions_in_all_states_are_found_and_foreigners_are_not():
    names = ["t-0", f"t-1.{UNIQUE}-delete", f"t-2.{UNIQUE}-future", f"t-3.{UNIQUE}-stray"]
    files = disk("/b", *(f"/a/{name}" for name in [*names, "remote-log-index-cache", "__cluster_metadata-0"]))
    files.open("/a/cleaner-offset-checkpoint", create=True)
    assert find(files) == {"/a": names, "/b": []}


def test_what_is_no_partition_is_named():
    with pytest.raises(InconsistentDirectory, match=r"/a holds .*lost\+found"):
        find(disk("/a/lost+found", "/b"))


def test_a_directory_that_cannot_be_read_is_offline_and_the_other_is_read():
    files = disk("/a/t-0", "/b/t-1")
    files.fail_next("list_dir", errno.EIO, "/a")
    assert find(files) == {"/b": ["t-1"]}


@pytest.mark.parametrize("names", [("t-0", "t-0"), (f"t-0.{UNIQUE}-future", f"t-0.{'1' * 32}-future")])
def test_two_directories_of_one_partition_are_refused(names):
    with pytest.raises(InconsistentDirectory, match="Duplicate log directories for t-0"):
        find(disk(f"/a/{names[0]}", f"/b/{names[1]}"))


def test_a_copy_beside_its_log_is_none_of_them():
    assert len(find(disk("/a/t-0", f"/b/t-0.{UNIQUE}-future"))) == 2


def test_a_change_over_that_was_interrupted_is_finished():
    files = disk("/a/t-0", "/b/t-0")
    files.open("/b/t-0/moved-here", create=True)
    found = find(files)
    assert found["/b"] == ["t-0"]
    [gone] = found["/a"]
    assert gone.startswith("t-0.")
    assert gone.endswith("-delete")
    assert files.is_dir(f"/a/{gone}")
    assert not files.exists("/a/t-0")


def test_if_the_old_directory_cannot_be_renamed_its_disk_has_failed():
    files = disk("/a/t-0", "/b/t-0")
    files.open("/b/t-0/moved-here", create=True)
    files.fail_next("rename", errno.EROFS, "/a/t-0")
    assert find(files) == {"/b": ["t-0"]}


def test_two_marks_prove_nothing():
    files = disk("/a/t-0", "/b/t-0")
    for path in ("/a", "/b"):
        files.open(f"{path}/t-0/moved-here", create=True)
    with pytest.raises(InconsistentDirectory):
        find(files)

"""The call that syncs a volume; what it makes durable is the disk's to prove, not a test's."""

import errno
import os
import sys

import pytest

from runtime import volume_sync
from runtime.descriptors import DescriptorCache
from runtime.os_files import OsFileSystem


@pytest.mark.parametrize(
    ("platform", "release", "able"),
    [
        ("linux", "6.1.0-13-amd64", True),
        ("linux", "5.8.0", True),
        ("linux", "5.8-rc1", True),
        ("linux", "5.7.19", False),
        ("linux", "4.19.0", False),
        ("darwin", "23.1.0", False),
        ("win32", "10", False),
    ],
)
def test_it_is_used_where_it_tells_of_failures(monkeypatch, platform, release, able):
    monkeypatch.setattr(volume_sync.sys, "platform", platform)
    names = os.uname()
    monkeypatch.setattr(
        volume_sync.os, "uname", lambda: os.uname_result((names[0], names[1], release, *names[3:]))
    )
    assert volume_sync.can_sync_volumes() == (able and sys.platform == platform)


def test_a_volume_is_synced_and_a_failure_is_told(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    volume_sync.sync_volume(fd)
    os.close(fd)
    with pytest.raises(OSError, match="Bad file descriptor") as failed:
        volume_sync.sync_volume(fd)
    assert failed.value.errno == errno.EBADF


def test_the_file_system_says_whether_it_was_done(tmp_path, monkeypatch):
    files = OsFileSystem(DescriptorCache(10))
    files.write_atomic(str(tmp_path / "a"), b"bytes")
    assert files.sync_volume(str(tmp_path)) == volume_sync.can_sync_volumes()
    monkeypatch.setattr(volume_sync, "can_sync_volumes", lambda: False)
    assert not files.sync_volume(str(tmp_path))

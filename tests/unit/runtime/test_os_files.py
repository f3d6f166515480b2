"""What the real disk does beyond the contract in tests/contract/test_file_system.py."""

import errno
import os
import subprocess
import sys

import pytest

from runtime import positional
from runtime.descriptors import DescriptorCache
from runtime.files import FileLockHeld
from runtime.os_files import OsFileSystem


@pytest.fixture
def files():
    return OsFileSystem(DescriptorCache(100))


def test_failed_append_tells_how_much_was_written(files, tmp_path, monkeypatch):
    def full_after_four(fd, parts, position):
        if position >= 4:
            raise OSError(errno.ENOSPC, "full")
        return os.pwrite(fd, b"".join(parts)[: 4 - position], position)

    handle = files.open(str(tmp_path / "a"), create=True)
    monkeypatch.setattr(positional, "write_parts_at", full_after_four)
    with pytest.raises(OSError, match="full") as failed:
        handle.append([b"abc", b"def"])
    assert failed.value.errno == errno.ENOSPC
    assert handle.size() == 4
    handle.truncate(0)
    assert handle.size() == 0


def test_lock_excludes_another_process(files, tmp_path):
    path = str(tmp_path / ".lock")
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from runtime.os_files import OsFileSystem\n"
        "lock = OsFileSystem().lock(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    )
    root = os.path.dirname(os.path.dirname(positional.__file__))
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code, path, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(FileLockHeld, match="another process"):
            files.lock(path)
        child.stdin.close()
        child.wait(60)
    files.lock(path).release()

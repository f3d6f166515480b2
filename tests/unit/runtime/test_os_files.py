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


def test_short_writes_are_gone_on_with(files, tmp_path, monkeypatch):
    calls = []

    def three_bytes_at_most(fd, parts, position):
        data = b"".join(parts)[:3]
        calls.append(len(data))
        return os.pwrite(fd, data, position)

    monkeypatch.setattr(positional, "write_parts_at", three_bytes_at_most)
    handle = files.open(str(tmp_path / "a"), create=True)
    handle.append([b"hello", b"", b"wo", b"rld"])
    handle.write_at(5, b"-----")
    assert handle.read_at(0, 100) == b"hello-----"
    assert sum(calls) == 15


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


def test_a_write_that_makes_no_progress_is_an_error(files, tmp_path, monkeypatch):
    handle = files.open(str(tmp_path / "a"), create=True)
    monkeypatch.setattr(positional, "write_parts_at", lambda fd, parts, position: 0)
    with pytest.raises(OSError, match="wrote nothing"):
        handle.append([b"abc"])


def test_positional_access_by_seeking_gives_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(positional, "read_at", positional.seek_read)
    monkeypatch.setattr(positional, "write_parts_at", positional.seek_write)
    files = OsFileSystem(DescriptorCache(10))
    handle = files.open(str(tmp_path / "a"), create=True)
    handle.append([b"ab", b"cd", b"ef"])
    handle.write_at(1, b"X")
    assert handle.read_at(0, 6) == b"aXcdef"
    assert handle.read_at(4, 10) == b"ef"


def test_descriptors_stay_within_the_limit_and_pinned_ones_survive(tmp_path):
    cache = DescriptorCache(3)
    files = OsFileSystem(cache)
    first = files.open(str(tmp_path / "first"), create=True)
    first.append([b"first"])
    fd = first.acquire_fd()
    others = [files.open(str(tmp_path / str(i)), create=True) for i in range(10)]
    assert cache.open_count <= 3
    os.remove(tmp_path / "first")
    assert os.pread(fd, 10, 0) == b"first"
    first.close()
    assert os.pread(fd, 10, 0) == b"first"
    first.release_fd()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    for other in others:
        other.close()
    assert cache.open_count == 0


def test_used_files_stay_open_longer_than_unused_ones(tmp_path):
    cache = DescriptorCache(4)
    files = OsFileSystem(cache)
    handles = [files.open(str(tmp_path / str(i)), create=True) for i in range(4)]
    files.open(str(tmp_path / "x"), create=True)  # everything was used once: the sweep clears all, closes one
    assert handles[0]._fd < 0
    handles[1].read_at(0, 1)
    files.open(str(tmp_path / "y"), create=True)
    assert handles[1]._fd >= 0
    assert handles[2]._fd < 0


def test_a_closed_file_opens_no_more(files, tmp_path):
    handle = files.open(str(tmp_path / "a"), create=True)
    handle.close()
    with pytest.raises(ValueError, match="closed"):
        handle.read_at(0, 1)


def test_a_removed_file_cannot_be_opened_again_after_eviction(tmp_path):
    files = OsFileSystem(DescriptorCache(1))
    first = files.open(str(tmp_path / "a"), create=True)
    files.open(str(tmp_path / "b"), create=True)
    os.remove(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        first.read_at(0, 1)
    assert first._pins == []


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
        child.wait(10)
    files.lock(path).release()

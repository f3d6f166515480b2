"""The descriptor cache: its bound, its second chances and its pins."""

import os
import resource

import pytest

from runtime.descriptors import DescriptorCache, default_descriptor_cache, raise_descriptor_limit
from runtime.os_files import OsFileSystem


@pytest.fixture
def files():
    return OsFileSystem(DescriptorCache(100))


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


def test_the_soft_limit_is_raised_as_far_as_the_hard_one_allows():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        raised = raise_descriptor_limit()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert raised > 256
        assert default_descriptor_cache(raised).limit < raised
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

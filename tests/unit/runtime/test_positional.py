"""Short writes, and positional access where the system has none."""

import os

import pytest

from runtime import positional
from runtime.descriptors import DescriptorCache
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

"""One contract for every file system behind the port: the real one and the simulated one."""

import errno
import threading

import pytest

from runtime.descriptors import DescriptorCache
from runtime.files import FileLockHeld, FileRegion
from runtime.os_files import OsFileSystem
from tests.simulation.files import SimFileSystem


@pytest.fixture(params=["real", "real, four descriptors", "simulated"])
def disk(request, tmp_path):
    """A file system and an empty directory on it."""
    if request.param == "simulated":
        files = SimFileSystem()
        files.make_dirs("/data")
        return files, "/data"
    limit = 4 if "four" in request.param else 1000
    return OsFileSystem(DescriptorCache(limit)), str(tmp_path)


def test_append_adds_all_parts_and_size_follows(disk):
    files, home = disk
    handle = files.open(f"{home}/a.log", create=True)
    handle.append([b"one", bytearray(b"two"), memoryview(b"-three-")[1:6]])
    handle.append([])
    handle.append([b""])
    handle.append([b"4"])
    assert handle.size() == 12
    assert handle.read_at(0, 100) == b"onetwothree4"
    assert handle.read_at(3, 3) == b"two"
    assert handle.read_at(12, 5) == b""
    assert files.read_bytes(f"{home}/a.log") == b"onetwothree4"
    assert files.size(f"{home}/a.log") == 12


def test_more_parts_than_one_system_call_takes(disk):
    files, home = disk
    handle = files.open(f"{home}/a", create=True)
    parts = [bytes([i % 251]) * (i % 7) for i in range(3000)]
    handle.append(parts)
    assert handle.read_at(0, 1 << 20) == b"".join(parts)


def test_opening_a_missing_file_needs_create(disk):
    files, home = disk
    with pytest.raises(FileNotFoundError):
        files.open(f"{home}/missing")
    with pytest.raises(FileNotFoundError):
        files.open(f"{home}/no/such/dir", create=True)
    assert not files.exists(f"{home}/missing")


def test_a_file_opened_again_goes_on_at_its_end(disk):
    files, home = disk
    first = files.open(f"{home}/a", create=True)
    first.append([b"abc"])
    first.close()
    second = files.open(f"{home}/a")
    assert second.size() == 3
    second.append([b"d"])
    assert second.read_at(0, 9) == b"abcd"


def test_truncate_and_overwrite(disk):
    files, home = disk
    handle = files.open(f"{home}/a", create=True)
    handle.append([b"0123456789"])
    handle.truncate(6)
    assert handle.size() == 6
    handle.write_at(4, b"XYZ")
    assert handle.read_at(0, 20) == b"0123XYZ"
    assert handle.size() == 7
    handle.append([b"!"])
    assert handle.read_at(0, 20) == b"0123XYZ!"


def test_a_handle_stays_usable_after_rename(disk):
    files, home = disk
    handle = files.open(f"{home}/a", create=True)
    handle.append([b"abc"])
    handle.rename(f"{home}/b")
    assert handle.path == f"{home}/b"
    others = [files.open(f"{home}/x{i}", create=True) for i in range(8)]  # evicts where few may be open
    handle.append([b"d"])
    assert handle.read_at(0, 9) == b"abcd"
    assert files.list_dir(home) == ["b", *(f"x{i}" for i in range(8))]
    for other in others:
        other.close()


def test_rename_replaces_what_is_there(disk):
    files, home = disk
    files.write_atomic(f"{home}/a", b"new")
    files.write_atomic(f"{home}/b", b"old")
    files.rename(f"{home}/a", f"{home}/b")
    assert files.read_bytes(f"{home}/b") == b"new"
    assert files.list_dir(home) == ["b"]
    with pytest.raises(FileNotFoundError):
        files.rename(f"{home}/a", f"{home}/c")


def test_a_directory_is_renamed_with_what_is_in_it(disk):
    files, home = disk
    files.make_dirs(f"{home}/t-0")
    handle = files.open(f"{home}/t-0/0.log", create=True)
    handle.append([b"x"])
    files.rename(f"{home}/t-0", f"{home}/t-0.deleted")
    assert files.list_dir(home) == ["t-0.deleted"]
    assert files.read_bytes(f"{home}/t-0.deleted/0.log") == b"x"


def test_many_files_stay_readable_whatever_is_open(disk):
    files, home = disk
    handles = [files.open(f"{home}/{i}", create=True) for i in range(20)]
    for round_ in range(3):
        for i, handle in enumerate(handles):
            handle.append([b"%d" % ((i + round_) % 10)])
    for i, handle in enumerate(handles):
        assert handle.read_at(0, 9) == b"".join(b"%d" % ((i + r) % 10) for r in range(3))
        handle.sync()


def test_regions_read_their_part(disk):
    files, home = disk
    handle = files.open(f"{home}/a", create=True)
    handle.append([b"0123456789"])
    assert FileRegion(handle, 2, 5).read() == b"23456"
    handle.warm(0, 10)
    assert handle.is_cached(0, 10)


def test_write_atomic_replaces_and_leaves_nothing_beside(disk):
    files, home = disk
    files.write_atomic(f"{home}/checkpoint", b"first")
    files.write_atomic(f"{home}/checkpoint", b"")
    assert files.read_bytes(f"{home}/checkpoint") == b""
    files.write_atomic(f"{home}/checkpoint", b"second")
    assert files.read_bytes(f"{home}/checkpoint") == b"second"
    assert files.list_dir(home) == ["checkpoint"]


def test_directories(disk):
    files, home = disk
    files.make_dirs(f"{home}/x/y")
    files.make_dirs(f"{home}/x/y")
    files.write_atomic(f"{home}/x/y/f", b"1")
    files.sync_dir(f"{home}/x")
    assert files.is_dir(f"{home}/x")
    assert not files.is_dir(f"{home}/x/y/f")
    assert files.exists(f"{home}/x/y/f")
    assert files.list_dir(f"{home}/x") == ["y"]
    files.remove(f"{home}/x/y/f")
    with pytest.raises(FileNotFoundError):
        files.remove(f"{home}/x/y/f")
    files.remove_tree(f"{home}/x")
    files.remove_tree(f"{home}/x")
    assert not files.exists(f"{home}/x")
    with pytest.raises(FileNotFoundError):
        files.list_dir(f"{home}/x")


def test_modification_time_and_disk_usage(disk):
    files, home = disk
    files.write_atomic(f"{home}/a", b"1")
    files.set_mtime_ms(f"{home}/a", 1_600_000_000_123)
    assert files.mtime_ms(f"{home}/a") == 1_600_000_000_123
    total, usable = files.disk_usage(home)
    assert 0 < usable <= total


def test_a_lock_is_held_once(disk):
    files, home = disk
    lock = files.lock(f"{home}/.lock")
    with pytest.raises(FileLockHeld):
        files.lock(f"{home}/.lock")
    lock.release()
    lock.release()
    files.lock(f"{home}/.lock").release()


def test_threads_read_while_files_are_opened_and_evicted(disk):
    files, home = disk
    handles = [files.open(f"{home}/{i}", create=True) for i in range(12)]
    for i, handle in enumerate(handles):
        handle.append([bytes([i]) * 64])
    wrong = []

    def read(start: int) -> None:
        for k in range(600):
            i = (start * 5 + k * 7) % 12
            if handles[i].read_at(0, 64) != bytes([i]) * 64:
                wrong.append(i)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for k in range(300):
        files.open(f"{home}/more{k % 5}", create=True).close()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_errors_carry_the_systems_number(disk):
    files, home = disk
    with pytest.raises(FileNotFoundError) as refused:
        files.read_bytes(f"{home}/nothing")
    assert refused.value.errno == errno.ENOENT


def test_a_file_that_is_held_for_an_answer_survives_its_removal(disk):
    files, home = disk
    handle = files.open(f"{home}/a", create=True)
    handle.append([b"bytes"])
    assert handle.hold()
    assert handle.hold()
    for i in range(10):
        files.open(f"{home}/{i}", create=True)
    files.remove(f"{home}/a")
    assert handle.read_at(0, 5) == b"bytes"
    handle.let_go()
    assert handle.read_at(0, 5) == b"bytes"
    handle.let_go()
    handle.close()


def test_a_file_that_is_held_for_an_answer_is_read_after_it_was_closed(disk):
    files, home = disk
    handle = files.open(f"{home}/a", create=True)
    handle.append([b"bytes"])
    assert handle.hold()
    handle.close()
    assert handle.read_at(0, 5) == b"bytes"
    handle.let_go()
    with pytest.raises(ValueError, match="is closed"):
        handle.hold(force=True)


def test_a_preallocated_file_is_long_and_goes_on_at_its_end(disk):
    files, home = disk
    handle = files.open(f"{home}/a", create=True)
    handle.append([b"one"])
    handle.preallocate(1_000)
    assert (handle.size(), files.size(f"{home}/a")) == (3, 1_000)
    handle.append([b"two", b"!"])
    assert (handle.size(), files.size(f"{home}/a")) == (7, 1_000)
    handle.write_at(0, b"O")
    assert handle.read_at(0, 9) == b"Onetwo!\0\0"
    assert files.open(f"{home}/a").size() == 1_000
    handle.trim()
    assert (handle.size(), files.size(f"{home}/a")) == (7, 7)
    handle.append([b"more"])
    handle.trim()
    assert files.read_bytes(f"{home}/a") == b"Onetwo!more"
    handle.preallocate(5)  # it is longer already
    assert (handle.size(), files.size(f"{home}/a")) == (11, 11)


def test_more_than_was_preallocated_may_be_written(disk):
    files, home = disk
    handle = files.open(f"{home}/a", create=True)
    handle.preallocate(4)
    handle.append([b"abcdefgh"])
    handle.trim()
    assert files.read_bytes(f"{home}/a") == b"abcdefgh"
    handle.preallocate(100)
    handle.truncate(2)
    assert (handle.size(), files.read_bytes(f"{home}/a")) == (2, b"ab")
    handle.append([b"!"])
    assert files.read_bytes(f"{home}/a") == b"ab!"


def test_absolute_paths(disk):
    files, home = disk
    assert files.absolute(home) == files.absolute(f"{home}/") == home
    assert files.absolute("/") == "/"
    assert files.absolute("a/../b").startswith("/")
    assert files.absolute("a/../b").endswith("/a/../b")

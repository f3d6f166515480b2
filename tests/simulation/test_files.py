"""The simulated disk must lose and fail exactly what it says, or the tests that build on it prove nothing."""

import errno

import pytest

from tests.simulation.files import SimFileSystem


@pytest.fixture
def files():
    files = SimFileSystem()
    files.make_dirs("/d")
    files.sync_dir("/")
    return files


def test_crash_loses_the_unsynced_tail_or_keeps_what_it_is_told_to(files):
    handle = files.open("/d/a", create=True)
    handle.append([b"synced"])
    handle.sync()
    files.sync_dir("/d")
    handle.append([b"-tail"])
    assert files.crash().read_bytes("/d/a") == b"synced"
    assert files.crash(lambda path, unsynced: 3).read_bytes("/d/a") == b"synced-ta"
    assert files.crash(lambda path, unsynced: unsynced).read_bytes("/d/a") == b"synced-tail"


def test_crash_undoes_names_that_were_not_synced(files):
    files.write_atomic("/d/kept", b"1")
    files.open("/d/new", create=True).sync()
    files.rename("/d/kept", "/d/moved")
    after = files.crash()
    assert after.list_dir("/d") == ["kept"]


def test_write_atomic_is_old_or_new_at_every_point(files):
    files.write_atomic("/d/c", b"old")
    for operation in ("open", "append", "sync", "rename", "sync_dir"):
        files.fail_next(operation, errno.EIO)
        with pytest.raises(OSError, match="Input/output"):
            files.write_atomic("/d/c", b"new")
    assert files.crash().read_bytes("/d/c") in (b"old", b"new")


def test_the_dead_host_touches_nothing_any_more(files):
    handle = files.open("/d/a", create=True)
    files.crash()
    with pytest.raises(OSError, match="down"):
        handle.append([b"x"])


def test_full_disk_takes_what_fits_and_truncate_makes_room(files):
    files.capacity_bytes = 10
    handle = files.open("/d/a", create=True)
    handle.append([b"12345678"])
    with pytest.raises(OSError, match="No space") as full:
        handle.append([b"abcd"])
    assert full.value.errno == errno.ENOSPC
    assert handle.size() == 10
    handle.truncate(8)
    handle.append([b"ab"])
    assert handle.read_at(0, 20) == b"12345678ab"


def test_armed_fault_meets_one_operation_on_the_path(files):
    a, b = files.open("/d/a", create=True), files.open("/d/b", create=True)
    files.fail_next("append", errno.EIO, "/b", written_bytes=2)
    a.append([b"fine"])
    with pytest.raises(OSError, match="Input/output"):
        b.append([b"half"])
    assert b.size() == 2
    b.append([b"on"])
    assert b.read_at(0, 9) == b"haon"


def test_a_killed_process_leaves_its_page_cache_behind_which_a_power_cut_still_takes(files):
    handle = files.open("/d/a", create=True)
    handle.append([b"synced"])
    handle.sync()
    files.sync_dir("/d")
    handle.append([b"-not"])
    lock = files.lock("/d/.lock")
    after = files.next_process()
    assert after.read_bytes("/d/a") == b"synced-not"
    after.lock("/d/.lock")
    lock.release()
    with pytest.raises(OSError, match="down"):
        handle.append([b"x"])
    assert after.crash().read_bytes("/d/a") == b"synced"

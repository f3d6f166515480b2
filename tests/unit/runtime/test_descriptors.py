"""The descriptor cache: its bound, its second chances and its pins."""

import errno
import os
import random
import resource
import tempfile
import threading

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

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


def test_when_the_process_has_no_descriptor_left_some_are_given_up(files, tmp_path, monkeypatch):
    handles = [files.open(str(tmp_path / str(i)), create=True) for i in range(24)]
    pinned = handles[0].acquire_fd()
    real, left = os.open, [0]

    def open_or_fail(*arguments):
        if files.descriptors.open_count >= 24 - left[0]:
            raise OSError(errno.EMFILE, "too many open files")
        return real(*arguments)

    monkeypatch.setattr(os, "open", open_or_fail)
    last = files.open(str(tmp_path / "more"), create=True)
    assert files.descriptors.open_count <= 24 - 24 // 8
    os.fstat(pinned)
    left[0] = 4
    files.write_atomic(str(tmp_path / "small"), b"text")
    assert files.descriptors.open_count < 20
    evicted = next(handle for handle in handles if handle._fd < 0)
    left[0] = 24 - files.descriptors.open_count
    assert evicted.read_at(0, 1) == b""  # opened again, where another one was closed
    monkeypatch.undo()
    os.fstat(pinned)
    last.close()


def test_what_else_fails_is_told_at_once(files, tmp_path, monkeypatch):
    files.open(str(tmp_path / "a"), create=True)
    calls = []

    def broken():
        calls.append(1)
        raise OSError(errno.EIO, "broken")

    with pytest.raises(OSError, match="broken"):
        files.descriptors.with_room(broken)
    assert (calls, files.descriptors.open_count) == ([1], 1)


def test_without_a_file_to_close_the_failure_is_told(files, monkeypatch):
    def none_left():
        raise OSError(errno.EMFILE, "too many open files")

    with pytest.raises(OSError, match="too many"):
        files.descriptors.with_room(none_left)


def test_half_of_the_limit_may_be_held_for_long(tmp_path):
    cache = DescriptorCache(4)
    files = OsFileSystem(cache)
    handles = [files.open(str(tmp_path / str(i)), create=True) for i in range(6)]
    assert [handle.hold() for handle in handles[:4]] == [True, True, False, False]
    assert handles[0].hold()  # is held already
    assert handles[3].hold(force=True)
    handles[0].let_go()
    assert not handles[2].hold()
    handles[0].let_go()
    handles[3].let_go()
    assert handles[2].hold()
    assert cache.held_count == 2


def test_threads_that_read_never_meet_a_foreign_file(tmp_path):
    """Descriptors are closed and their numbers used again all the time; what is read is right or nothing."""
    files = OsFileSystem(DescriptorCache(3))
    handles = []
    for number in range(40):
        handles.append(files.open(str(tmp_path / str(number)), create=True))
        handles[-1].append([b"%04d" % number * 50])
    wrong, stop = [], threading.Event()

    def read(seed):
        draw = random.Random(seed)
        while not stop.is_set():
            number = draw.randrange(40)
            found = handles[number].read_at(4 * draw.randrange(50), 4)
            if found != b"%04d" % number:
                wrong.append((number, found))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for round_ in range(3000):
        number = round_ % 40
        fd = handles[number].acquire_fd()
        if os.pread(fd, 4, 0) != b"%04d" % number:
            wrong.append((number, fd))
        handles[number].release_fd()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert files.descriptors.open_count <= 6  # one for each of the five pins there were at once, and one
    files.open(str(tmp_path / "last"), create=True)
    assert files.descriptors.open_count == 3


class Machine(RuleBasedStateMachine):
    """Files are opened, read, written, pinned, held, renamed, removed and closed in any order."""

    handles = Bundle("handles")
    pins = Bundle("pins")

    @initialize(limit=st.integers(1, 6))
    def begin(self, limit):
        self.home = tempfile.TemporaryDirectory()
        self.cache = DescriptorCache(limit)
        self.files = OsFileSystem(self.cache)
        self.number = 0
        self.contents, self.pinned, self.held = {}, {}, []

    def _name(self):
        self.number += 1
        return f"{self.home.name}/{self.number}"

    @rule(target=handles)
    def open(self):
        handle = self.files.open(self._name(), create=True)
        self.contents[handle] = b""
        return handle

    @rule(handle=handles, data=st.binary(min_size=1, max_size=5))
    def append(self, handle, data):
        handle.append([data])
        self.contents[handle] += data

    @rule(handle=handles)
    def read(self, handle):
        assert handle.read_at(0, 1000) == self.contents[handle]

    @rule(handle=handles)
    def rename(self, handle):
        handle.rename(self._name())

    @rule(handle=handles, target=pins)
    def pin(self, handle):
        fd = handle.acquire_fd()
        self.pinned[handle] = self.pinned.get(handle, 0) + 1
        return handle, fd

    @rule(handle=handles, force=st.booleans(), target=pins)
    def hold(self, handle, force):
        if not handle.hold(force):
            assert len({held for held, _ in self.held}) >= self.cache.held_max
            return multiple()
        self.held.append((handle, handle._fd))
        self.pinned[handle] = self.pinned.get(handle, 0) + 1
        return handle, -1

    @rule(pin=consumes(pins))
    def release(self, pin):
        handle, fd = pin
        self.pinned[handle] -= 1
        if fd < 0:
            self.held.remove((handle, handle._fd))
            handle.let_go()
        else:
            assert os.pread(fd, 1000, 0) == self.contents[handle]
            handle.release_fd()

    @rule(handle=consumes(handles), remove=st.booleans())
    def close(self, handle, remove):
        if remove:
            os.remove(handle.path)
        handle.close()

    @invariant()
    def pinned_files_are_open_and_the_limit_holds_for_the_others(self):
        if not hasattr(self, "cache"):
            return
        pinned = [handle for handle, count in self.pinned.items() if count]
        for handle in pinned:
            assert os.pread(handle._fd, 1000, 0) == self.contents[handle]
        assert self.cache.open_count <= max(self.cache.limit, len(pinned) + 1)
        assert len({handle._fd for handle in self.cache._open}) == self.cache.open_count
        assert self.cache.held_count == len({held for held, _ in self.held})

    def teardown(self):
        if hasattr(self, "cache"):
            for handle in list(self.cache._open):
                handle._pins.clear()
                handle.close()
            self.home.cleanup()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_what_was_open_beyond_the_limit_because_of_a_pin_is_closed_with_it(tmp_path):
    files = OsFileSystem(DescriptorCache(1))
    first = files.open(str(tmp_path / "first"), create=True)
    first.acquire_fd()
    second = files.open(str(tmp_path / "second"), create=True)
    second.acquire_fd()
    assert files.descriptors.open_count == 2
    first.release_fd()
    assert files.descriptors.open_count == 1
    second.release_fd()
    assert files.descriptors.open_count == 1

"""How many files may be open at once, and which one is closed when another is needed.

Each segment has three files and a broker may have a hundred thousand segments, so descriptors are a
cache: a file is opened when used and closed when it was the least used of many (second chance: a bit set
on use, cleared by the sweep; setting a bit costs a read nothing, moving it in a list would).

Threads read and sync files while the loop opens others. A user of a descriptor therefore puts a pin on
its file first and reads the number afterwards, and the sweep takes the number away first and looks for
pins afterwards: whoever comes second sees the other. Lists serve as pin counters because append and pop
are atomic.

Invariants: no descriptor is closed or reused while somebody has a pin on its file. At most `limit` files are
open, and one for each pin beyond that: a pin lasts as long as one call, but for those of answers that wait
for a slow peer (`hold`), of which there are half the limit at most before they have to do without. Where the
process runs out of descriptors all the same, because sockets took more than their share, files that nobody
uses are closed and the call is tried again.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_KEPT_FOR_OTHERS = 256  # sockets of a small broker, pipes, database, libraries
_WANTED = 100_000
_GIVEN_UP = 8  # one of so many open files is closed when the process has no descriptor left
_EXHAUSTED = (errno.EMFILE, errno.ENFILE)


class CachedFile:
    """The descriptor of one file, which the cache may close between two uses."""

    __slots__ = ("_cache", "_closed", "_fd", "_holds", "_pins", "_used", "path")

    def __init__(self, cache: DescriptorCache, path: str, fd: int) -> None:
        self.path = path
        self._cache = cache
        self._fd = fd
        self._pins: list[None] = []
        self._holds = 0  # pins of answers on their way, counted on the event loop's thread
        self._used = True
        self._closed = False

    def acquire_fd(self) -> int:
        self._pins.append(None)
        self._used = True
        fd = self._fd
        if fd >= 0:
            return fd
        try:
            return self._cache.reopen(self)
        except OSError:
            self._pins.pop()
            raise

    def release_fd(self) -> None:
        self._pins.pop()
        if self._closed:
            self._cache.drop(self)
        elif self._cache.open_count > self._cache.limit:
            self._cache.trim()

    def hold(self, force: bool = False) -> bool:
        if not self._holds:
            if self._cache.held_count >= self._cache.held_max and not force:
                return False
            self.acquire_fd()
            self._cache.held_count += 1
        self._holds += 1
        return True

    def let_go(self) -> None:
        self._holds -= 1
        if not self._holds:
            self._cache.held_count -= 1
            self.release_fd()

    def close(self) -> None:
        self._closed = True
        self._cache.drop(self)


class DescriptorCache:
    """Open descriptors up to `limit`; more only while more than that are pinned."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held_max = limit // 2
        self.held_count = 0  # files that answers on their way hold open
        self.can_probe = True  # until a file system refuses to tell what is cached
        self._open: dict[CachedFile, None] = {}  # in the order in which the sweep visits them
        self._lock = threading.Lock()

    @property
    def open_count(self) -> int:
        return len(self._open)

    def with_room(self, open_it: Callable[[], T]) -> T:
        """What `open_it` gives; it is called again, after files were closed, if no descriptor was left."""
        try:
            return open_it()
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            with self._lock:
                if not self._make_room():
                    raise
        return open_it()

    def add(self, file: CachedFile) -> None:
        """Take over a file that was just opened."""
        with self._lock:
            self._open[file] = None
            self._sweep()

    def reopen(self, file: CachedFile) -> int:
        """Open the file again by its present path; the caller holds a pin on it."""
        with self._lock:
            if file._fd < 0:
                if file._closed:
                    raise ValueError(f"{file.path} is closed")
                try:
                    file._fd = open_file(file.path)
                except OSError as error:
                    if error.errno not in _EXHAUSTED or not self._make_room():
                        raise
                    file._fd = open_file(file.path)
                self._open[file] = None
                self._sweep()
            return file._fd

    def rename(self, file: CachedFile, path: str) -> None:
        """Move the file; under the lock, so that nobody opens it by the old name meanwhile."""
        with self._lock:
            os.replace(file.path, path)
            file.path = path

    def drop(self, file: CachedFile) -> None:
        """Close a file for good, unless somebody still holds a pin."""
        with self._lock:
            if file._fd >= 0 and not file._pins:
                fd, file._fd = file._fd, -1
                self._open.pop(file, None)
                os.close(fd)

    def trim(self) -> None:
        """A pin has gone: close what was open beyond the limit because of it."""
        with self._lock:
            self._sweep()

    def _sweep(self) -> None:
        if len(self._open) > self.limit:
            self._close_some(len(self._open) - self.limit)

    def _make_room(self) -> int:
        return self._close_some(len(self._open) // _GIVEN_UP + 1)

    def _close_some(self, wanted: int) -> int:
        """Close so many of the least used files, fewer if the others are pinned; how many were closed."""
        closed, chances = 0, 2 * len(self._open)
        while closed < wanted and chances > 0:
            chances -= 1
            file = next(iter(self._open))
            del self._open[file]
            if file._used:
                file._used = False
                self._open[file] = None
                continue
            fd, file._fd = file._fd, -1
            if file._pins:
                file._fd = fd
                self._open[file] = None
            else:
                os.close(fd)
                closed += 1
        return closed


def open_file(path: str, create: bool = False) -> int:
    """A descriptor for reading and writing in binary, not inherited by child processes."""
    flags = os.O_RDWR | getattr(os, "O_BINARY", 0) | (os.O_CREAT if create else 0)
    return os.open(path, flags, 0o644)


def raise_descriptor_limit() -> int:
    """Lift the soft limit of open descriptors as far as the system allows; returns the limit in force."""
    if sys.platform == "win32":
        return 2048
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):  # macOS refuses more than kern.maxfilesperproc
            return soft
        return wanted
    return wanted if soft == resource.RLIM_INFINITY else soft


def default_descriptor_cache(limit: int) -> DescriptorCache:
    """A cache that takes half of the process's descriptors; sockets and libraries share the other half."""
    return DescriptorCache(max(64, (limit - _KEPT_FOR_OTHERS) // 2))

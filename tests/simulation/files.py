"""A file system in memory that can lose, refuse and fail, behind the port of `runtime.files`.

Each file has two images: what the process sees (the page cache) and what survives a crash (the disk).
`sync` copies the first to the second; names are durable only after `sync_dir`. `crash` keeps the durable
images, gives an unsynced tail the fate it is asked for, and undoes names that were not synced.

Faults are armed by `fail_next(operation, errno, path_part)` or drawn by `draw`; a full disk is a
`capacity_bytes` that writes run into, with the bytes that still fit written, as on a real one.
"""

from __future__ import annotations

import copy
import errno
import functools
import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from runtime.files import Buffer, FileLockHeld

UNLIMITED = 1 << 40  # bytes of a disk


@dataclass(slots=True, eq=False)
class SimFile:
    """One file, whatever its names are now."""

    seen: bytearray = field(default_factory=bytearray)
    durable: bytearray | None = None  # None: the file itself was never synced
    mtime_ms: int = 0


@dataclass(slots=True)
class Fault:
    """What the next matching operation meets."""

    operation: str
    number: int
    path_part: str
    written_bytes: int = 0  # of an append, before it fails


class SimFileLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held, self._path = held, path

    def release(self) -> None:
        self._held.discard(self._path)


class SimFileHandle:
    """See `runtime.files.FileHandle`."""

    def __init__(self, files: SimFileSystem, path: str, file: SimFile) -> None:
        self.path = path
        self._files = files
        self._file = file
        self._closed = False
        self._pins = 0
        self._end: int | None = None  # of what was written, where more was preallocated

    def size(self) -> int:
        return len(self._file.seen) if self._end is None else self._end

    def append(self, parts: Sequence[Buffer]) -> None:
        self._write(self.size(), b"".join(parts), "append")

    def write_at(self, position: int, data: Buffer) -> None:
        assert 0 <= position <= self.size(), "a hole"
        self._write(position, bytes(data), "write_at")

    def _write(self, position: int, data: bytes, operation: str) -> None:
        self._check()
        files, seen = self._files, self._file.seen
        fault = files.fault(operation, self.path)
        if fault is not None:
            data = data[: fault.written_bytes]
        else:
            growth = position + len(data) - len(seen)
            unlimited = files.capacity_bytes == UNLIMITED  # the usual case, and the sum is long
            room = growth if unlimited else files.capacity_bytes - files.used_bytes()
            if growth > room:
                data = data[: len(data) - (growth - room)]
                fault = Fault(operation, errno.ENOSPC, self.path)
        seen[position : position + len(data)] = data
        if self._end is not None:
            self._end = max(self._end, position + len(data)) if fault is None else None
        self._file.mtime_ms = files.now_ms()
        if fault is not None:
            raise OSError(fault.number, os.strerror(fault.number), self.path)

    def read_at(self, position: int, length: int) -> bytes:
        self._check()
        self._files.meet("read_at", self.path)
        return bytes(self._file.seen[position : position + length])

    def is_cached(self, position: int, length: int) -> bool:
        return not (self._files.cold or self._files.misses())

    def warm(self, position: int, length: int) -> None:
        self._files.meet("read_at", self.path)
        self._files.cold = False

    def truncate(self, size: int) -> None:
        self._check()
        assert 0 <= size <= self.size(), "truncate makes no file longer"
        self._files.meet("truncate", self.path)
        del self._file.seen[size:]
        self._end = None

    def preallocate(self, length: int) -> None:
        self._check()
        self._files.meet("preallocate", self.path)
        end = self.size()
        if length > end:
            self._file.seen += bytes(length - len(self._file.seen))
            self._end = end

    def trim(self) -> None:
        if self._end is not None:
            self.truncate(self._end)

    def sync(self) -> None:
        self._check()
        self._files.meet("sync", self.path)
        self._file.durable = bytearray(self._file.seen)

    def rename(self, path: str) -> None:
        self._files.rename(self.path, path)
        self.path = posixpath.normpath(path)

    def close(self) -> None:
        self._closed = True

    def acquire_fd(self) -> int:
        self._check()
        self._pins += 1
        return -1

    def release_fd(self) -> None:
        self._pins -= 1

    def hold(self, force: bool = False) -> bool:
        if not force and self._files.held >= self._files.held_max:
            return False
        self.acquire_fd()
        self._files.held += 1
        return True

    def let_go(self) -> None:
        self._files.held -= 1
        self.release_fd()

    def _check(self) -> None:
        if self._closed and not self._pins:
            raise ValueError(f"{self.path} is closed")
        self._files.check_alive()


class SimFileSystem:
    """See `runtime.files.FileSystem`."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0, capacity_bytes: int = UNLIMITED) -> None:
        self.now_ms = now_ms
        self.capacity_bytes = capacity_bytes
        self.draw: Callable[[str, str], Fault | None] = lambda operation, path: None
        self.cold = False
        self.misses: Callable[[], bool] = lambda: False  # whether a look into the page cache finds nothing
        self.held = 0  # by answers on their way
        self.held_max = 1 << 30
        self._names: dict[str, SimFile] = {}
        self._dirs: dict[str, None] = {"/": None, ".": None}
        self._durable_names: dict[str, SimFile] = {}
        self._durable_dirs: dict[str, None] = {"/": None, ".": None}
        self._dir_renames: list[tuple[str, str]] = []  # source and target; not on the disk yet
        self._armed: list[Fault] = []
        self._locked: set[str] = set()
        self._dead = False

    # faults

    def fail_next(self, operation: str, number: int, path_part: str = "", written_bytes: int = 0) -> None:
        """The next `operation` on a path that contains `path_part` raises OSError(number)."""
        self._armed.append(Fault(operation, number, path_part, written_bytes))

    def fault(self, operation: str, path: str) -> Fault | None:
        for armed in self._armed:
            if armed.operation == operation and armed.path_part in path:
                self._armed.remove(armed)
                return armed
        return self.draw(operation, path)

    def meet(self, operation: str, path: str) -> None:
        self.check_alive()
        fault = self.fault(operation, path)
        if fault is not None:
            raise OSError(fault.number, os.strerror(fault.number), path)

    def check_alive(self) -> None:
        if self._dead:
            raise OSError(errno.EIO, "the host is down")

    def used_bytes(self) -> int:
        return sum(len(file.seen) for file in self._names.values())

    def crash(self, tail: Callable[[str, int], int] = lambda path, unsynced: 0) -> SimFileSystem:
        """Cut the power and give the disk as the next start finds it; this one answers EIO from now on.

        `tail(path, unsynced)` says how many bytes of an unsynced tail reached the disk anyway.
        """
        self._dead = True
        after = SimFileSystem(self.now_ms, self.capacity_bytes)
        after._dirs = dict(self._durable_dirs)
        for path, file in self._durable_names.items():
            durable = file.durable if file.durable is not None else bytearray()
            unsynced = max(0, len(file.seen) - len(durable))
            kept = min(unsynced, tail(path, unsynced)) if unsynced else 0
            image = durable + file.seen[len(durable) : len(durable) + kept]
            after._names[path] = SimFile(image, bytearray(image), file.mtime_ms)
        after._durable_names = dict(after._names)
        after._durable_dirs = dict(after._dirs)
        return after

    def next_process(self) -> Self:
        """The same disk for another process, after a kill -9: what was written is there, synced or not.

        The process before has lost it, with its locks and what was armed for it.
        """
        after = copy.copy(self)
        after._armed, after._locked, after.held = [], set(), 0
        self._dead = True
        return after

    # the port

    def open(self, path: str, create: bool = False) -> SimFileHandle:
        path = posixpath.normpath(path)
        self.meet("open", path)
        file = self._names.get(path)
        if file is None:
            if not create or _parent(path) not in self._dirs:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            file = self._names[path] = SimFile(mtime_ms=self.now_ms())
        return SimFileHandle(self, path, file)

    def exists(self, path: str) -> bool:
        self.check_alive()
        path = posixpath.normpath(path)
        return path in self._names or path in self._dirs

    def is_dir(self, path: str) -> bool:
        self.check_alive()
        return posixpath.normpath(path) in self._dirs

    def list_dir(self, path: str) -> list[str]:
        path = posixpath.normpath(path)
        self.meet("list_dir", path)
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        every = [*self._names, *self._dirs]
        return sorted(posixpath.basename(each) for each in every if _parent(each) == path and each != path)

    def make_dirs(self, path: str) -> None:
        path = posixpath.normpath(path)
        self.meet("make_dirs", path)
        if path in self._names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        while path not in self._dirs:
            self._dirs[path] = None
            path = _parent(path)

    def rename(self, source: str, target: str) -> None:
        source, target = posixpath.normpath(source), posixpath.normpath(target)
        self.meet("rename", source)
        if source in self._names:
            self._names[target] = self._names.pop(source)
            return
        if source not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        if any(_parent(name) == target for name in (*self._names, *self._dirs)):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), target)
        self._names = {_moved(name, source, target): file for name, file in self._names.items()}
        self._dirs = {_moved(name, source, target): None for name in self._dirs}
        self._dir_renames.append((source, target))

    def remove(self, path: str) -> None:
        path = posixpath.normpath(path)
        self.meet("remove", path)
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        del self._names[path]

    def remove_tree(self, path: str) -> None:
        path = posixpath.normpath(path)
        self.meet("remove_tree", path)
        inside = f"{path}/"
        self._names = {n: f for n, f in self._names.items() if not n.startswith(inside)}
        self._dirs = {n: None for n in self._dirs if n != path and not n.startswith(inside)}

    def read_bytes(self, path: str) -> bytes:
        return self.open(path).read_at(0, 1 << 62)

    def write_atomic(self, path: str, data: Buffer) -> None:
        temporary = f"{path}.tmp"
        handle = self.open(temporary, create=True)
        handle.truncate(0)
        handle.append((data,))
        handle.sync()
        handle.rename(path)
        self.sync_dir(posixpath.dirname(posixpath.normpath(path)) or ".")

    def sync_volume(self, path: str) -> bool:
        self.meet("sync_volume", path)
        for file in self._names.values():
            file.durable = bytearray(file.seen)
        for directory in list(self._dirs):
            self.sync_dir(directory)
        return True

    def sync_dir(self, path: str) -> None:
        path = posixpath.normpath(path)
        self.meet("sync_dir", path)
        if path not in self._dirs:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self._settle_dir_renames(path)
        durable, names = self._durable_names, self._names
        place = self.durable_place(path)
        for name in [n for n in durable if _parent(n) == place and _moved(n, place, path) not in names]:
            del durable[name]
        durable.update({_moved(n, path, place): file for n, file in names.items() if _parent(n) == path})
        ends = f"{place.rstrip('/')}/"
        gone = [
            d for d in self._durable_dirs if d.startswith(ends) and _moved(d, place, path) not in self._dirs
        ]
        for name in gone:
            del self._durable_dirs[name]
            for file in [n for n in durable if n.startswith(f"{name}/")]:
                del durable[file]
        at = place
        while at not in self._durable_dirs:
            self._durable_dirs[at] = None
            at = _parent(at)
        self._durable_dirs.update({_moved(d, path, place): None for d in self._dirs if _parent(d) == path})

    def durable_place(self, path: str) -> str:
        """Where the disk has what is at `path`: renames of directories may not have reached it."""
        for source, target in reversed(self._dir_renames):
            path = _moved(path, target, source)
        return path

    def _settle_dir_renames(self, parent: str) -> None:
        """The names in `parent` reach the disk, and with them what renamed directories contain there."""
        for source, target in [each for each in self._dir_renames if _parent(each[0]) == parent]:
            self._dir_renames.remove((source, target))
            self._durable_names = {_moved(n, source, target): f for n, f in self._durable_names.items()}
            self._durable_dirs = {_moved(d, source, target): None for d in self._durable_dirs}

    def size(self, path: str) -> int:
        self.check_alive()
        return len(self._file(path).seen)

    def mtime_ms(self, path: str) -> int:
        self.check_alive()
        return self._file(path).mtime_ms

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        self.meet("set_mtime_ms", path)
        self._file(path).mtime_ms = mtime_ms

    def absolute(self, path: str) -> str:
        return posixpath.join("/", path.rstrip("/") or "/")

    def disk_usage(self, path: str) -> tuple[int, int]:
        self.meet("disk_usage", path)
        return self.capacity_bytes, max(0, self.capacity_bytes - self.used_bytes())

    def lock(self, path: str) -> SimFileLock:
        path = posixpath.normpath(path)
        if path in self._locked:
            raise FileLockHeld(f"{path} is locked by this process")
        self.open(path, create=True)
        self._locked.add(path)
        return SimFileLock(self._locked, path)

    def _file(self, path: str) -> SimFile:
        file = self._names.get(posixpath.normpath(path))
        if file is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return file


@functools.lru_cache(1 << 14)
def _parent(path: str) -> str:
    return posixpath.dirname(path) or "."


def _moved(path: str, source: str, target: str) -> str:
    if path == source:
        return target
    return target + path[len(source) :] if path.startswith(f"{source}/") else path

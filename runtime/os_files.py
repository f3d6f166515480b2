"""The file system of the machine behind the port of `runtime.files`.

Reads and writes are positional: no descriptor carries a file position, so any of them may be closed and
opened again between two calls. Cold reads are recognised with RWF_NOWAIT where the kernel has it (Linux);
elsewhere every read counts as warm.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Sequence

from runtime import positional
from runtime.descriptors import (
    CachedFile,
    DescriptorCache,
    default_descriptor_cache,
    open_file,
    raise_descriptor_limit,
)
from runtime.files import Buffer, FileLockHeld

_RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
_PROBE_STEP_BYTES = 256 << 10  # 0.5 us each; what is cached was read ahead or written in longer runs
_WARM_STEP_BYTES = 256 << 10


class OsFileHandle(CachedFile):
    """A file on disk; see `runtime.files.FileHandle` for the contract of each method."""

    __slots__ = ("_preallocated", "_size")

    def __init__(self, cache: DescriptorCache, path: str, fd: int) -> None:
        super().__init__(cache, path, fd)
        self._size = os.fstat(fd).st_size
        self._preallocated = False

    def size(self) -> int:
        return self._size

    def append(self, parts: Sequence[Buffer]) -> None:
        if not parts:
            return
        fd = self.acquire_fd()
        try:
            self._size = positional.write_all(fd, parts, self._size)
        except OSError:
            self._size = os.fstat(fd).st_size
            raise
        finally:
            self.release_fd()

    def write_at(self, position: int, data: Buffer) -> None:
        assert 0 <= position <= self._size, (
            f"{self.path}: write at {position} leaves a hole behind {self._size}"
        )
        fd = self.acquire_fd()
        try:
            self._size = max(self._size, positional.write_all(fd, (data,), position))
        except OSError:
            self._size = os.fstat(fd).st_size
            raise
        finally:
            self.release_fd()

    def read_at(self, position: int, length: int) -> bytes:
        fd = self.acquire_fd()
        try:
            read = positional.read_at(fd, length, position)
            if len(read) == length or not read:
                return read
            return self._read_on(fd, read, position, length)
        finally:
            self.release_fd()

    def _read_on(self, fd: int, first: bytes, position: int, length: int) -> bytes:
        """One pread gives at most 2 GiB, and less when a signal comes in between."""
        pieces, have = [first], len(first)
        while have < length and (piece := positional.read_at(fd, length - have, position + have)):
            pieces.append(piece)
            have += len(piece)
        return b"".join(pieces)

    def is_cached(self, position: int, length: int) -> bool:
        if not _RWF_NOWAIT or not self._cache.can_probe:
            return True
        fd = self.acquire_fd()
        try:
            end = min(position + length, self._size) - 1
            byte = [bytearray(1)]
            for at in range(position, end, _PROBE_STEP_BYTES):
                os.preadv(fd, byte, at, _RWF_NOWAIT)
            if end >= position:
                os.preadv(fd, byte, end, _RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:  # a file system without the flag
            self._cache.can_probe = False
        finally:
            self.release_fd()
        return True

    def warm(self, position: int, length: int) -> None:
        fd = self.acquire_fd()
        try:
            if sys.platform == "linux":
                os.posix_fadvise(fd, position, length, os.POSIX_FADV_WILLNEED)
            for at in range(position, position + length, _WARM_STEP_BYTES):
                positional.read_at(fd, min(_WARM_STEP_BYTES, position + length - at), at)
        finally:
            self.release_fd()

    def truncate(self, size: int) -> None:
        assert 0 <= size <= self._size, f"{self.path}: truncate to {size} of {self._size} bytes"
        fd = self.acquire_fd()
        try:
            os.ftruncate(fd, size)
            self._size = size
            self._preallocated = False
        finally:
            self.release_fd()

    def preallocate(self, length: int) -> None:
        if length <= self._size:
            return
        fd = self.acquire_fd()
        try:
            os.ftruncate(fd, length)
            self._preallocated = True
        finally:
            self.release_fd()

    def trim(self) -> None:
        if self._preallocated:
            self.truncate(self._size)

    def sync(self) -> None:
        fd = self.acquire_fd()
        try:
            os.fsync(fd)
        finally:
            self.release_fd()

    def rename(self, path: str) -> None:
        self._cache.rename(self, path)


class OsFileLock:
    """A POSIX record lock; the system drops it when the process ends, however it ends."""

    def __init__(self, held: set[str], path: str, fd: int) -> None:
        self._held = held
        self._path = path
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._held.discard(self._path)


class OsFileSystem:
    """See `runtime.files.FileSystem` for the contract of each method."""

    def __init__(self, descriptors: DescriptorCache | None = None) -> None:
        self.descriptors = descriptors or default_descriptor_cache(raise_descriptor_limit())
        self._locked: set[str] = set()  # a POSIX lock does not exclude its own process
        self._lock = threading.Lock()

    def open(self, path: str, create: bool = False) -> OsFileHandle:
        fd = self.descriptors.with_room(lambda: open_file(path, create))
        try:
            handle = OsFileHandle(self.descriptors, path, fd)
        except OSError:
            os.close(fd)
            raise
        self.descriptors.add(handle)
        return handle

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_dir(self, path: str) -> list[str]:
        return sorted(self.descriptors.with_room(lambda: os.listdir(path)))

    def make_dirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_tree(self, path: str) -> None:
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            if os.path.exists(path):  # something inside went away meanwhile: go over it again
                shutil.rmtree(path)

    def read_bytes(self, path: str) -> bytes:
        with self.descriptors.with_room(lambda: open(path, "rb", buffering=0)) as file:
            return file.readall()

    def write_atomic(self, path: str, data: Buffer) -> None:
        temporary = f"{path}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)
        fd = self.descriptors.with_room(lambda: os.open(temporary, flags, 0o644))
        try:
            if data:
                positional.write_all(fd, (data,), 0)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
        self.sync_dir(os.path.dirname(path) or ".")

    def sync_dir(self, path: str) -> None:
        if sys.platform == "win32":
            return  # a directory cannot be opened there; the journal orders renames
        fd = self.descriptors.with_room(lambda: os.open(path, os.O_RDONLY))
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_volume(self, path: str) -> bool:
        from runtime import volume_sync  # brings ctypes with it, for one call at the end of a life

        if not volume_sync.can_sync_volumes():
            return False
        fd = self.descriptors.with_room(lambda: os.open(path, os.O_RDONLY))
        try:
            volume_sync.sync_volume(fd)
        finally:
            os.close(fd)
        return True

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def mtime_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def absolute(self, path: str) -> str:
        return os.path.join(os.getcwd(), path.rstrip("/") or "/")

    def disk_usage(self, path: str) -> tuple[int, int]:
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def lock(self, path: str) -> OsFileLock:
        real = os.path.realpath(path)
        with self._lock:
            if real in self._locked:
                raise FileLockHeld(f"{path} is locked by this process")
            fd = open_file(path, create=True)
            try:
                _lock_descriptor(fd)
            except OSError as error:
                os.close(fd)
                raise FileLockHeld(f"{path} is locked by another process") from error
            self._locked.add(real)
            return OsFileLock(self._locked, real, fd)


def _lock_descriptor(fd: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

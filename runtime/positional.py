"""Positional reads and writes for every platform.

POSIX systems have pread, pwrite and pwritev. Windows has none of them: there a lock makes a seek and the
read or write that follows one step.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence

from runtime.files import Buffer

IOV_MAX = 1024  # parts that one writev takes on Linux and macOS
_seek_lock = threading.Lock()


def seek_read(fd: int, length: int, position: int) -> bytes:
    """pread by seeking."""
    with _seek_lock:
        os.lseek(fd, position, os.SEEK_SET)
        return os.read(fd, length)


def seek_write(fd: int, parts: Sequence[Buffer], position: int) -> int:
    """pwritev by seeking; writes the first part only, which its caller takes for a short write."""
    with _seek_lock:
        os.lseek(fd, position, os.SEEK_SET)
        return os.write(fd, parts[0])


read_at: Callable[[int, int, int], bytes] = getattr(os, "pread", seek_read)
write_parts_at: Callable[[int, Sequence[Buffer], int], int] = getattr(os, "pwritev", seek_write)


def write_all(fd: int, parts: Sequence[Buffer], position: int) -> int:
    """Write all parts from `position` on, going on after short writes; returns the position behind them."""
    if len(parts) == 1 or len(parts) <= IOV_MAX:
        wanted = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        written = write_parts_at(fd, parts, position)
        if written == wanted:
            return position + written
        return _write_rest(fd, parts, position + written, written)
    return _write_rest(fd, parts, position, 0)


def _write_rest(fd: int, parts: Sequence[Buffer], position: int, done: int) -> int:
    rest: list[Buffer] = []
    for part in parts:
        size = len(part)
        if done >= size:
            done -= size
            continue
        rest.append(memoryview(part)[done:] if done else part)
        done = 0
    first = 0
    while first < len(rest):
        written = write_parts_at(fd, rest[first : first + IOV_MAX], position)
        if not written:
            raise OSError(errno.EIO, "the system wrote nothing and reported no error")
        position += written
        while first < len(rest) and written >= len(rest[first]):
            written -= len(rest[first])
            first += 1
        if written:
            rest[first] = memoryview(rest[first])[written:]
    return position

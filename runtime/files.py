"""The port to the file system: `FileSystem`, `FileHandle`, `FileLock` and `FileRegion`.

Everything that storage does to a disk goes through these, so that a test can put a simulated disk behind
them which forgets what was not synced, runs full or fails. One contract suite runs on the real and the
simulated one.

Invariants:
- A handle is a file by identity, not by name: it stays usable after `rename` and, while a descriptor is
  acquired, after removal. Descriptors are opened when needed and closed behind the scenes.
- One writer for each file. The size is therefore known to the handle and costs no system call.
- Nothing is durable before `sync` of the file; a new, renamed or removed name is not durable before
  `sync_dir` of its directory. `write_atomic` does both.
- No file is mapped: a full disk under a mapped file kills the process with SIGBUS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


class FileLockHeld(OSError):
    """Another process, or another part of this one, holds the lock."""


class FileHandle(Protocol):
    """One open file. Reads and `sync` may run on any thread; writes come from one thread at a time."""

    path: str

    def size(self) -> int:
        """Bytes in the file, as this handle's writes left it."""

    def append(self, parts: Sequence[Buffer]) -> None:
        """Write all parts at the end, with one system call where the kernel takes them whole.

        Raises OSError (ENOSPC, EIO, ...). Then some of the bytes may be in the file: `size` tells how many
        there are, and the caller cuts the file back with `truncate`.
        """

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite from `position` on; may extend the file but leaves no hole."""

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def is_cached(self, position: int, length: int) -> bool:
        """Whether reading these bytes now would not wait for the disk, as far as the system tells."""

    def warm(self, position: int, length: int) -> None:
        """Read the bytes into the page cache. Waits for the disk: call it off the event loop."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes, which must not be more than it has."""

    def preallocate(self, length: int) -> None:
        """Make the file so long at once, zeros behind its end; `size` and `append` go by the end as before.

        A handle that is opened later knows nothing of it, until `trim`.
        """

    def trim(self) -> None:
        """Cut off what `preallocate` added and nobody wrote to."""

    def sync(self) -> None:
        """Bring contents and size to the disk. Waits for the disk: call it off the event loop.

        After a failed sync the page cache lies about what is on the disk: the caller takes the directory
        offline.
        """

    def rename(self, path: str) -> None:
        """Move the file, replacing what is there; open descriptors and regions stay valid."""

    def close(self) -> None:
        """Give up the descriptor as soon as nobody has acquired it; no other method may follow."""

    def acquire_fd(self) -> int:
        """A descriptor that is neither closed nor reused before `release_fd`; -1 where there is none."""

    def release_fd(self) -> None:
        """Give back what `acquire_fd` gave, once for each call."""

    def hold(self, force: bool = False) -> bool:
        """Keep the file open for an answer that may take long to leave, on the event loop's thread.

        False, and nothing is kept, while too many files are held like this; `force` does it all the same.
        """

    def let_go(self) -> None:
        """Give back what `hold` kept, once for each call that returned True."""


class FileLock(Protocol):
    """A lock that other processes see."""

    def release(self) -> None:
        """Let others have it."""


class FileSystem(Protocol):
    """Paths are absolute or relative texts; all calls may raise OSError with the system's errno."""

    def open(self, path: str, create: bool = False) -> FileHandle:
        """Open for reading and writing; `create` makes a missing file. FileNotFoundError otherwise."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def list_dir(self, path: str) -> list[str]:
        """Names in the directory, sorted."""

    def make_dirs(self, path: str) -> None:
        """Make the directory and its missing parents; no error if it is there."""

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory; a file that is there is replaced."""

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory with everything in it; no error if it is not there."""

    def read_bytes(self, path: str) -> bytes: ...

    def write_atomic(self, path: str, data: Buffer) -> None:
        """Replace the file so that a crash leaves the old or the new contents.

        Temporary file, sync, rename, sync of the directory.
        """

    def sync_dir(self, path: str) -> None:
        """Make the names in the directory durable."""

    def sync_volume(self, path: str) -> bool:
        """Make everything durable that was written to the volume which holds the path, by whomever.

        False, and nothing is done, where the system has no such call or it tells of no failures.
        """

    def size(self, path: str) -> int: ...

    def mtime_ms(self, path: str) -> int: ...

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None: ...

    def absolute(self, path: str) -> str:
        """The path from the root on, without a slash at its end; names that lead nowhere are kept."""

    def disk_usage(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume that holds the path."""

    def lock(self, path: str) -> FileLock:
        """Take the lock of the file, which is made if missing. Raises FileLockHeld at once if it is taken.

        It is a POSIX record lock, the kind that Kafka's `.lock` uses, so brokers of both kinds exclude
        each other.
        """


@dataclass(slots=True)
class FileRegion:
    """A part of a file that goes to a socket without passing through the process.

    Whoever queues a region holds its file, so that it outlives eviction and removal.
    """

    handle: FileHandle
    position: int
    length: int

    def read(self) -> bytes:
        """The bytes, where they are needed in memory (TLS, down-conversion)."""
        return self.handle.read_at(self.position, self.length)

"""A simulated disk whose power can be cut between any two operations, and what it may hold afterwards.

Names: of the operations on a directory since its last sync (create, rename, remove) any number of the first
ones has reached the disk. Contents: of a file's bytes since its last sync each sector may be the old or the
new one, a sector that was never written reads as zeros, and the size is anything between the two. That is
more than file systems in use do to us.
"""

from __future__ import annotations

import posixpath
import random
from collections.abc import Callable
from typing import Protocol

from tests.simulation.files import Fault, SimFile, SimFileHandle, SimFileSystem

SECTOR_BYTES = 512
CHANGING = ("create", "append", "write_at", "truncate", "sync", "sync_dir", "rename", "remove", "remove_tree")

Names = dict[str, SimFile]
Dirs = dict[str, None]
Change = Callable[[Names, Dirs, str], None]
"""Of a directory that lies where the third argument says."""
Rename = tuple[str, str] | None


class PowerCut(BaseException):
    """The process ends here; not an error that anybody may handle."""


class Fate(Protocol):
    """What becomes of what was not synced."""

    def names(self, directory: str, pending: int) -> int:
        """How many of the first pending changes of a directory's names reached the disk."""

    def image(self, path: str, durable: bytes, seen: bytes) -> bytes:
        """What is in a file that was `durable` at its last sync and `seen` by the process at the end."""


class Lost:
    """Nothing that was not synced is there."""

    def names(self, directory: str, pending: int) -> int:
        return 0

    def image(self, path: str, durable: bytes, seen: bytes) -> bytes:
        return durable


class Kept:
    """Everything is there, as after the death of the process alone."""

    def names(self, directory: str, pending: int) -> int:
        return pending

    def image(self, path: str, durable: bytes, seen: bytes) -> bytes:
        return seen


class Torn:
    """By chance."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def names(self, directory: str, pending: int) -> int:
        return self._chance.choice([0, pending, self._chance.randint(0, pending)])

    def image(self, path: str, durable: bytes, seen: bytes) -> bytes:
        chance, longest = self._chance, max(len(durable), len(seen))
        low, high = sorted((len(durable), len(seen)))
        size = chance.choice([low, high, chance.randint(low, high)])
        old, new = durable.ljust(longest, b"\0"), seen.ljust(longest, b"\0")
        kind = chance.choice(["old", "new", "first", "any"])
        sectors = range(0, longest, SECTOR_BYTES)
        first = chance.randint(0, len(sectors))
        image = bytearray()
        for number, at in enumerate(sectors):
            takes_new = {"old": False, "new": True, "first": number < first, "any": chance.random() < 0.5}
            image += (new if takes_new[kind] else old)[at : at + SECTOR_BYTES]
        return bytes(image[:size])


class PowerFileSystem(SimFileSystem):
    """See the module. `operations` counts the changes; `cut_at` ends the process before that one."""

    def __init__(self, now_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(now_ms)
        self.operations = 0
        self.cut_at = -1
        self.on_cut: Callable[[], None] = lambda: None
        self._pending: dict[str, list[tuple[Change, Rename]]] = {}

    def fault(self, operation: str, path: str) -> Fault | None:
        if operation in CHANGING:
            if 0 <= self.cut_at <= self.operations:
                self.on_cut()
                raise PowerCut
            self.operations += 1
        return super().fault(operation, path)

    def cut_power(self, fate: Fate) -> PowerFileSystem:
        """What the next start finds; this one is not to be used any more."""
        names, dirs = dict(self._durable_names), dict(self._durable_dirs)
        undone: list[tuple[str, str]] = []  # renames of directories
        for directory in sorted(self._pending):
            changes = self._pending[directory]
            count = fate.names(directory, len(changes))
            place = directory
            for source, target in reversed(undone):
                if place == target or place.startswith(f"{target}/"):
                    place = source + place[len(target) :]
            for change, _ in changes[:count]:
                change(names, dirs, place)
            undone += [rename for _, rename in changes[count:] if rename is not None]
        self._dead = True
        after = PowerFileSystem(self.now_ms)
        after.capacity_bytes, after.held_max = self.capacity_bytes, self.held_max
        after._dirs = dirs
        for path, file in sorted(names.items()):
            if posixpath.dirname(path) in dirs:
                image = bytearray(fate.image(path, bytes(file.durable or b""), bytes(file.seen)))
                after._names[path] = SimFile(image, bytearray(image), file.mtime_ms)
        after._durable_names, after._durable_dirs = dict(after._names), dict(after._dirs)
        return after

    def _note(self, path: str, change: Change, rename: Rename = None) -> None:
        self._pending.setdefault(posixpath.dirname(path), []).append((change, rename))

    # the port

    def open(self, path: str, create: bool = False) -> SimFileHandle:
        path = posixpath.normpath(path)
        fresh = create and path not in self._names
        if fresh:
            self.meet("create", path)
        handle = super().open(path, create)
        if fresh:
            file, base = self._names[path], posixpath.basename(path)
            self._note(path, lambda names, dirs, at: names.update({posixpath.join(at, base): file}))
        return handle

    def rename(self, source: str, target: str) -> None:
        old, new = posixpath.normpath(source), posixpath.normpath(target)
        is_dir = old in self._dirs
        super().rename(old, new)
        assert posixpath.dirname(old) == posixpath.dirname(new), "a rename within one directory"

        def change(names: Names, dirs: Dirs, at: str) -> None:
            source = posixpath.join(at, posixpath.basename(old))
            target = posixpath.join(at, posixpath.basename(new))
            if source in names:
                names[target] = names.pop(source)
            if source in dirs:
                for each in [d for d in dirs if d == source or d.startswith(f"{source}/")]:
                    dirs[target + each[len(source) :]] = dirs.pop(each)
                for each in [n for n in names if n.startswith(f"{source}/")]:
                    names[target + each[len(source) :]] = names.pop(each)

        self._note(old, change, (old, new) if is_dir else None)
        if old in self._pending:
            self._pending[new] = self._pending.pop(old)

    def remove(self, path: str) -> None:
        path = posixpath.normpath(path)
        super().remove(path)
        base = posixpath.basename(path)
        self._note(path, lambda names, dirs, at: names.pop(posixpath.join(at, base), None) and None)

    def remove_tree(self, path: str) -> None:
        path = posixpath.normpath(path)
        super().remove_tree(path)

        def change(names: Names, dirs: Dirs, at: str) -> None:
            gone = posixpath.join(at, posixpath.basename(path))
            for each in [n for n in names if n.startswith(f"{gone}/")]:
                del names[each]
            for each in [d for d in dirs if d == gone or d.startswith(f"{gone}/")]:
                del dirs[each]

        self._note(path, change)

    def make_dirs(self, path: str) -> None:
        path = posixpath.normpath(path)
        made = []
        at = path
        while at not in self._dirs:
            made.append(at)
            at = posixpath.dirname(at) or "."
        super().make_dirs(path)
        for each in reversed(made):
            base = posixpath.basename(each)
            self._note(each, lambda names, dirs, at, base=base: dirs.update({posixpath.join(at, base): None}))

    def sync_dir(self, path: str) -> None:
        super().sync_dir(path)
        at = posixpath.normpath(path)
        self._pending.pop(at, None)

"""How far each text file was read, through appending, rotation and truncation.

A file is known by its device and inode, and by a checksum of its first bytes: renaming keeps it, a new file
under an old name is new, and so is one that was emptied and written again (copytruncate) or that got a
deleted one's inode. A place is always the beginning of a line: a line counts when its end (LF) is there.

Places are what Spark's checkpoint keeps as offset of the source:

    {"2049-131": {"path": "/var/log/app.log", "at": 5120, "head": 256, "crc": 2843115, "life": 0}, ...}
"""

from __future__ import annotations

import glob
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

HEAD_BYTES = 256  # enough for a time stamp and the first message
BLOCK_BYTES = 1 << 16
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".tgz")  # rotated files: their lines are known


@dataclass(slots=True, frozen=True)
class Place:
    """Bytes of a file that were read, and how to know the file again."""

    path: str
    at: int = 0
    head: int = 0
    crc: int = 0
    life: int = 0  # how often another file came in its place under the same identity

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True, frozen=True)
class Found:
    """A file that is there now."""

    identity: str
    path: str
    size: int
    modified_s: float


@dataclass(slots=True, frozen=True)
class Range:
    """Lines of one file for one task."""

    identity: str
    path: str
    start: int
    end: int
    head: int
    crc: int


Places = dict[str, Place]


class LinesGone(Exception):
    """Lines that were promised to a batch can't be read any more; the text names file and range."""


def places_from(told: dict[str, Any]) -> Places:
    return {identity: Place(**place) for identity, place in told.items()}


def places_json(places: Places) -> dict[str, Any]:
    return {identity: place.as_json() for identity, place in places.items()}


def identity_of(status: os.stat_result) -> str:
    return f"{status.st_dev}-{status.st_ino}"


def look(patterns: Iterable[str], known: Places) -> list[Found]:
    """Files of the patterns (a folder means what is in it), and known ones that moved within their folder.

    The oldest change comes first, so that with a limit of bytes a rotated file's rest goes before its
    successor's lines. Within a batch only the lines of one file are in order.
    """
    found: dict[str, Found] = {}
    for path in paths_of(patterns):
        add(found, path)
    for folder in sorted({os.path.dirname(place.path) for i, place in known.items() if i not in found}):
        if os.path.isdir(folder):
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
                add(found, entry.path, only=known)
    return sorted(found.values(), key=lambda each: (each.modified_s, each.path))


def paths_of(patterns: Iterable[str]) -> Iterator[str]:
    for pattern in patterns:
        if os.path.isdir(pattern):
            names = sorted(os.listdir(pattern))
            yield from (
                os.path.join(pattern, name)
                for name in names
                if not name.startswith(".") and not name.endswith(COMPRESSED)
            )
        else:
            yield from sorted(glob.glob(pattern, recursive=True))


def add(found: dict[str, Found], path: str, only: Places | None = None) -> None:
    try:
        status = os.stat(path)
    except FileNotFoundError:  # rotated away since it was listed
        return
    identity = identity_of(status)
    if stat.S_ISREG(status.st_mode) and (only is None or identity in only):
        found.setdefault(identity, Found(identity, os.path.abspath(path), status.st_size, status.st_mtime))


def checksum(file: BinaryIO, length: int) -> int:
    file.seek(0)
    return zlib.crc32(file.read(length))


def same(file: BinaryIO, size: int, place: Place) -> bool:
    """Whether a file still begins with what was read of it."""
    return size >= place.at and checksum(file, place.head) == place.crc


def advance(
    files: Iterable[Found],
    known: Places,
    limit: int | None = None,
    upto: dict[str, int] | None = None,
    finished_before_s: float | None = None,
) -> Places:
    """The places after the next batch: whole lines, `limit` bytes at most (or one line that is longer).

    Files that are gone lose their place. `upto` bounds the files' sizes, and files that are not in it are
    left for later. A last line without its end counts in files that did not change since
    `finished_before_s`.
    """
    places: Places = {}
    left = limit
    for each in files:
        place = known.get(each.identity)
        if place is None and upto is not None and each.identity not in upto:
            continue
        place = place or Place(each.path)
        try:
            with open(each.path, "rb") as file:
                if not same(file, each.size, place):
                    place = Place(each.path, life=place.life + 1)
                size = (
                    each.size if upto is None else min(each.size, upto.setdefault(each.identity, each.size))
                )
                end = place.at
                if size > end and (left is None or left > 0):
                    idle = finished_before_s is not None and each.modified_s < finished_before_s
                    end = end_of_lines(file, place.at, size, left, idle, beyond=left == limit)
                head = min(end, HEAD_BYTES)
                crc = place.crc if head == place.head else checksum(file, head)
        except FileNotFoundError:
            continue
        if left is not None:
            left -= end - place.at
        places[each.identity] = Place(each.path, end, head, crc, place.life)
    return places


def end_of_lines(file: BinaryIO, start: int, size: int, limit: int | None, whole: bool, beyond: bool) -> int:
    """Where the lines end that are complete, at most `limit` bytes on; with `beyond` or one line on.

    With `whole` the file's end is a line's end.
    """
    until = size if limit is None else min(size, start + limit)
    position = until
    while position > start:  # backwards: usually the last block has one
        block = max(start, position - BLOCK_BYTES)
        file.seek(block)
        at = file.read(position - block).rfind(b"\n")
        if at >= 0:
            return block + at + 1
        position = block
    file.seek(until)
    position = until
    while beyond and position < size:  # a line that is longer than the limit
        read = file.read(min(BLOCK_BYTES, size - position))
        at = read.find(b"\n")
        if at >= 0:
            return position + at + 1
        position += len(read)
        if not read:
            break
    return size if whole and (beyond or until == size) else start


def ranges(start: Places, end: Places) -> list[Range]:
    """What each task reads: one file's lines, so they stay in order."""
    made = []
    for identity, place in end.items():
        before = start.get(identity)
        at = before.at if before is not None and before.life == place.life else 0
        if at < place.at:
            made.append(Range(identity, place.path, at, place.at, place.head, place.crc))
    return made


def find(wanted: Range) -> str:
    """Where the file is now: it may have been renamed since the batch was planned. Raises LinesGone."""
    folder = os.path.dirname(wanted.path)
    candidates = [wanted.path]
    if os.path.isdir(folder):
        candidates += [entry.path for entry in os.scandir(folder)]
    for path in candidates:
        try:
            status = os.stat(path)
            if identity_of(status) == wanted.identity:
                with open(path, "rb") as file:
                    if same(file, status.st_size, Place(path, wanted.end, wanted.head, wanted.crc)):
                        return path
        except FileNotFoundError:
            continue
    raise LinesGone(
        f"file {wanted.path}: bytes {wanted.start} to {wanted.end} are gone (deleted or emptied before they "
        "were read)"
    )


def read_lines(path: str, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Each line's position and bytes, without its end (LF or CR LF)."""
    with open(path, "rb") as file:
        file.seek(start)
        position = start
        while position < end:
            line = file.readline(end - position)
            if not line:
                raise LinesGone(f"file {path}: ends at {position}, before {end}")
            yield position, line.removesuffix(b"\n").removesuffix(b"\r")
            position += len(line)

"""Kafka's small text files of offsets: a version line `0`, a count line, then one entry a line.

The four files in the root of a log directory hold `TOPIC PARTITION OFFSET`; the leader epochs of a partition
use the same frame with `EPOCH OFFSET` (leader_epochs.py). A file is replaced whole: temporary file, fsync,
rename, fsync of the directory, so that after a crash either the old or the new one is there. An empty file is
an empty checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtime.files import FileSystem
from storage.errors import CorruptCheckpoint

VERSION = 0


def read_entries(files: FileSystem, path: str, width: int, *, torn: bool = False) -> list[list[str]]:
    """The entries of a checkpoint, split at white space; a missing or empty file has none.

    Raises CorruptCheckpoint for another version, a wrong number of words in a line, or lines that do not
    match the announced count; where a power cut may have `torn` the file also for a last line without end.
    """
    if not files.exists(path):
        return []
    try:
        lines = files.read_bytes(path).decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path} is not a text file") from error
    if lines[-1] == "":
        lines.pop()
    elif torn:
        raise CorruptCheckpoint(f"{path} ends within a line")
    if not lines:
        return []
    if _integer(lines[0], path, 1) != VERSION:
        raise CorruptCheckpoint(f"{path} has version {lines[0]}, known is {VERSION}")
    if len(lines) == 1:
        return []
    count = _integer(lines[1], path, 2)
    entries = [line.split() for line in lines[2:]]
    for number, words in enumerate(entries, 3):
        if len(words) != width:
            raise CorruptCheckpoint(f"{path} line {number} has {len(words)} words instead of {width}")
    if len(entries) != count:
        raise CorruptCheckpoint(f"{path} announces {count} entries and holds {len(entries)}")
    return entries


def write_entries(files: FileSystem, path: str, entries: Iterable[str], *, durable: bool = True) -> None:
    """Replace the file by these lines, safely against a crash at any moment.

    Not `durable`: safe against the death of the process; against a power cut after `sync_file`.
    """
    lines = list(entries)
    data = "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode()
    if durable:
        files.write_atomic(path, data)
    else:
        replace_file(files, path, data)


def replace_file(files: FileSystem, path: str, data: bytes) -> None:
    """Put new contents under the name without waiting for the disk."""
    handle = files.open(f"{path}.tmp", create=True)
    try:
        if handle.size():
            handle.truncate(0)
        handle.append([data])
        handle.rename(path)
    finally:
        handle.close()


def sync_file(files: FileSystem, path: str) -> None:
    """Wait until the contents of the file are on the disk; no error if there is none."""
    try:
        handle = files.open(path)
    except FileNotFoundError:
        return
    try:
        handle.sync()
    finally:
        handle.close()


def read_offsets(files: FileSystem, path: str) -> dict[tuple[str, int], int]:
    """(topic, partition) to offset, as the files in the root of a log directory have it."""
    return {
        (topic, _integer(partition, path, number)): _integer(offset, path, number)
        for number, (topic, partition, offset) in enumerate(read_entries(files, path, 3), 3)
    }


def write_offsets(files: FileSystem, path: str, offsets: Mapping[tuple[str, int], int]) -> None:
    write_entries(files, path, (f"{topic} {partition} {at}" for (topic, partition), at in offsets.items()))


def parse_integer(text: str, path: str, line: int) -> int:
    """A number of a checkpoint; CorruptCheckpoint names the file and line where it is none."""
    return _integer(text, path, line)


def _integer(text: str, path: str, line: int) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise CorruptCheckpoint(f"{path} line {line}: {text!r} is not a number") from error

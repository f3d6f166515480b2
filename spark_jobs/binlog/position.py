"""Places in a binlog, and the file that keeps the place up to which everything is in the topic.

The file is JSON, replaced as a whole: a kill or a power cut leaves the old one or the new one. It is locked
while a reader runs, so that two can't write the same topic from one file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

FORMAT = 1
BINLOG_START = 4  # offset of the first event of a binlog file


class PositionDamaged(RuntimeError):
    """The position file can't be used; the message says what to do."""


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A change's place: number of the binlog file, offset where its event ends, number within the event."""

    sequence: int
    offset: int
    number: int

    def text(self, server: str, file: str) -> str:
        """As it stands in a record's header: `SERVER/mariadb-bin.000012:4567:0`."""
        return f"{server}/{file}:{self.offset}:{self.number}"


def sequence_of(file: str) -> int:
    """12 for `mariadb-bin.000012`."""
    return int(file.rpartition(".")[2])


def parse_position(text: str) -> tuple[str, Position]:
    """The reverse of Position.text: server and place; ValueError where it is something else."""
    server, slash, place = text.rpartition("/")
    file, offset, number = place.rsplit(":", 2)
    if not slash:
        raise ValueError(f"no server in {text!r}")
    return server, Position(sequence_of(file), int(offset), int(number))


@dataclass(slots=True)
class Saved:
    """What is kept between runs. `created_s`: when the server made the binlog file, so that a reset shows."""

    file: str
    offset: int
    created_s: int = 0
    server: str = ""
    partitions: dict[str, int] = field(default_factory=dict)

    @property
    def position(self) -> Position:
        return Position(sequence_of(self.file), self.offset, 0)


def load(path: Path) -> Saved | None:
    """What the last run saved; None where there was none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        found = json.loads(text)
        if found.pop("format") != FORMAT:
            raise ValueError("another format")
        saved = Saved(**found)
        sequence_of(saved.file)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PositionDamaged(
            f"{path} is not a position file ({error}). Restore it, or delete it and say where to begin with "
            "--start: what the topic has already is recognised and left out."
        ) from error
    return saved


def save(path: Path, saved: Saved) -> None:
    """Replaces the file durably: content, name and folder entry are on disk before it returns."""
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, **asdict(saved)}, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Keeps other readers off the file; the system frees it when its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PositionDamaged(
                f"another reader holds {path}: end it first, or name another file"
            ) from error
        yield

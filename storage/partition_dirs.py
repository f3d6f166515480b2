"""Which subdirectories of the log directories are partitions, and pairs of them for one partition.

A pair is refused, as in Kafka, unless the change-over of a move to another log directory was interrupted
(`future_logs.py`): then the directory that was moved to stays, and the other one goes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TypeAlias

from runtime.entropy import Random
from runtime.files import FileSystem
from storage import names
from storage.errors import InconsistentDirectory
from storage.log_dirs import LogDir

logger = logging.getLogger(__name__)

Found: TypeAlias = list[tuple[str, names.PartitionDir]]
"""Names of subdirectories and what they say."""


def find_all(files: FileSystem, random: Random, directories: Sequence[LogDir]) -> list[tuple[LogDir, Found]]:
    """The partitions of each directory that can be read; one that cannot is offline afterwards.

    Raises InconsistentDirectory for a subdirectory that is no partition, and for pairs.
    """
    everything = []
    for directory in directories:
        try:
            everything.append((directory, find(files, directory)))
        except OSError as error:
            directory.fail(error)
    _settle_pairs(files, random, everything)
    return [(directory, found) for directory, found in everything if not directory.offline]


def find(files: FileSystem, directory: LogDir) -> Found:
    """The partitions of one directory. Raises OSError, InconsistentDirectory."""
    found = []
    for name in files.list_dir(directory.path):
        if "." not in name or not name.endswith("checkpoint"):
            parsed = _parse(files, directory, name)
            if parsed is not None:
                found.append((name, parsed))
    return found


def _parse(files: FileSystem, directory: LogDir, name: str) -> names.PartitionDir | None:
    if name in names.FOREIGN_DIRS or not files.is_dir(directory.path_of(name)):
        return None
    try:
        parsed = names.parse_partition_dir(name)
    except ValueError as error:
        raise InconsistentDirectory(
            f"{directory.path} holds something that is no partition: {error}. "
            f"Give the broker a directory of its own, or move {name} away"
        ) from error
    return None if parsed.topic == names.METADATA_TOPIC else parsed


def _settle_pairs(files: FileSystem, random: Random, everything: list[tuple[LogDir, Found]]) -> None:
    places: dict[tuple[str, int, str], list[tuple[LogDir, str]]] = {}
    for directory, found in everything:
        for name, (topic, partition, kind) in found:
            if kind in ("", "future"):
                places.setdefault((topic, partition, kind), []).append((directory, name))
    by_path = {directory.path: found for directory, found in everything}
    for (topic, partition, kind), here in places.items():
        if len(here) == 1:
            continue
        moved = [place for place in here if files.exists(f"{place[0].path_of(place[1])}/{names.MOVED_HERE}")]
        if kind or len(here) > 2 or len(moved) != 1:
            raise InconsistentDirectory(_refusal(topic, partition, here))
        [(old, name)] = [place for place in here if place not in moved]
        logger.info("The move of %s from %s to %s is finished", name, old.path, moved[0][0].path)
        gone = names.suffixed_dir(topic, partition, random.uuid(), "delete")
        found = by_path[old.path]
        found[:] = [entry for entry in found if entry[0] != name]
        try:
            files.rename(old.path_of(name), old.path_of(gone))
        except OSError as error:
            old.fail(error)
        else:
            found.append((gone, names.PartitionDir(topic, partition, "delete")))


def _refusal(topic: str, partition: int, here: list[tuple[LogDir, str]]) -> str:
    paths = [directory.path_of(name) for directory, name in here]
    return (
        f"Duplicate log directories for {topic}-{partition} are found in {' and '.join(paths)}. "
        "Keep the one that is right and move the other one away, out of the log directories"
    )

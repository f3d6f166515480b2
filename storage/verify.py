"""Looks at everything in a log directory and tells what is wrong with it; changes nothing.

The core of `ottla verify-log`. It goes further than a start does, which trusts what lies below the recovery
point: every batch's checksum, and with `deep` every record in it; offsets that rise within and across
segments; indexes against their logs; snapshots, transaction indexes, checkpoints and the small text files.
A `Finding` is either damage or a note about something that a start will clear away or rebuild. The broker
must not be writing to the directory meanwhile: the end of a log would look torn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from protocol.errors import InvalidRecords
from runtime.files import FileSystem
from storage import names, segment_dump
from storage.checkpoints import read_entries, read_offsets
from storage.errors import CorruptCheckpoint, CorruptLog, StorageError
from storage.log_dirs import read_meta
from storage.partition_metadata import read_topic_id

LEFTOVERS = (names.DELETED, names.CLEANED, names.SWAP, names.TEMPORARY)
OFFSET_CHECKPOINTS = (
    names.RECOVERY_POINTS, names.LOG_STARTS, names.HIGH_WATERMARKS, names.CLEANER_OFFSETS,
)  # fmt: skip
_WRONG = (StorageError, CorruptCheckpoint, InvalidRecords, OSError, ValueError)


class Finding(NamedTuple):
    """`damage` is false for what a start puts right without losing anything."""

    path: str
    text: str
    damage: bool = True


@dataclass(slots=True)
class Totals:
    """What was looked at."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0


def verify_dir(files: FileSystem, path: str, totals: Totals, *, deep: bool = False) -> Iterator[Finding]:
    """A log directory with its partitions, or a single partition's directory."""
    if _is_partition(files, path):
        yield from verify_partition(files, path, totals, deep=deep)
        return
    yield from _check(f"{path}/{names.META_PROPERTIES}", lambda at: read_meta(files, at))
    for name in OFFSET_CHECKPOINTS:
        yield from _check(f"{path}/{name}", lambda at: read_offsets(files, at))
    for name in files.list_dir(path):
        below = f"{path}/{name}"
        if not files.is_dir(below) or name in names.FOREIGN_DIRS:
            continue
        try:
            found = names.parse_partition_dir(name)
        except ValueError as error:
            yield Finding(below, f"{error}: Kafka does not start with it")
            continue
        if found.kind:
            yield Finding(below, f"set aside ({found.kind})", damage=False)
        elif found.topic != names.METADATA_TOPIC:
            yield from verify_partition(files, below, totals, deep=deep)


def verify_partition(files: FileSystem, path: str, totals: Totals, *, deep: bool) -> Iterator[Finding]:
    """All files of one partition."""
    totals.partitions += 1
    found = files.list_dir(path)
    yield from _check(f"{path}/{names.PARTITION_METADATA}", lambda at: read_topic_id(files, at))
    yield from _check(f"{path}/{names.LEADER_EPOCHS}", lambda at: _check_epochs(files, at))
    logs = sorted(name for name in found if name.endswith(names.LOG))
    end_offset = 0
    for name in logs:
        base_offset = names.offset_of(name)
        if base_offset < end_offset:
            yield Finding(f"{path}/{name}", f"begins below offset {end_offset}, where the one before it ends")
        findings, end_offset = _verify_log(files, f"{path}/{name}", totals, deep=deep)
        yield from findings
    stems = {name.removesuffix(names.LOG) for name in logs}
    for name in found:
        yield from _verify_other(files, path, name, stems, end_offset)


def _verify_log(files: FileSystem, path: str, totals: Totals, *, deep: bool) -> tuple[list[Finding], int]:
    """A segment's log; what is wrong, and the offset behind its last batch."""
    findings: list[Finding] = []
    dump = segment_dump.LogDump(files, path)
    next_offset = dump.start_offset
    totals.segments += 1
    totals.size_bytes += dump.size
    try:
        for batch in dump.batches():
            facts = batch.facts
            totals.batches += 1
            where = f"the batch at byte {facts.position} (offsets {facts.base_offset} to {facts.last_offset})"
            if not batch.valid:
                findings.append(Finding(path, f"{where} has a wrong checksum"))
            if facts.last_offset < next_offset or facts.base_offset < dump.start_offset:
                findings.append(Finding(path, f"{where} lies below offset {next_offset}"))
            next_offset = max(next_offset, facts.last_offset + 1)
            if deep and batch.valid:
                try:
                    totals.records += sum(1 for _ in batch.records())
                except _WRONG as error:
                    findings.append(Finding(path, f"{where} can't be read: {error}"))
    except CorruptLog as error:
        findings.append(Finding(path, str(error)))
    finally:
        dump.close()
    left = dump.size - dump.valid_bytes
    if left:
        findings.append(Finding(path, f"{left} bytes behind byte {dump.valid_bytes} are no whole batch"))
    return findings, next_offset


def _verify_other(
    files: FileSystem, folder: str, name: str, stems: set[str], end_offset: int
) -> Iterator[Finding]:
    """A file that is no log."""
    path = f"{folder}/{name}"
    suffix = f".{name.rpartition('.')[2]}"
    if suffix in LEFTOVERS:
        yield Finding(path, "was left behind by a stop in the middle of something", damage=False)
    elif suffix in (names.OFFSET_INDEX, names.TIME_INDEX, names.TXN_INDEX):
        if name.removesuffix(suffix) not in stems:
            yield Finding(path, "belongs to no log", damage=False)
        elif suffix == names.TXN_INDEX:
            yield from _check(path, lambda at: _check_txn_index(files, at))
        else:
            yield from _verify_index(files, path, suffix)
    elif suffix == names.SNAPSHOT:
        yield from _check(path, lambda at: segment_dump.dump_snapshot(files, at))
        if names.offset_of(name) > end_offset:
            yield Finding(path, f"lies behind the end of the log, {end_offset}", damage=False)


def _verify_index(files: FileSystem, path: str, suffix: str) -> Iterator[Finding]:
    is_time = suffix == names.TIME_INDEX
    try:
        dump = (segment_dump.dump_time_index if is_time else segment_dump.dump_offset_index)(files, path)
    except _WRONG as error:
        yield Finding(path, str(error))
        return
    if dump.problem is not None:
        yield Finding(path, dump.problem)
    elif not dump.sound:
        wrong = [*dump.mismatches, *dump.wrong_timestamps, *dump.out_of_order, *dump.not_found]
        yield Finding(path, f"{len(wrong)} of {len(dump.entries)} entries do not agree with the log")


def _check(path: str, read: Callable[[str], object]) -> Iterator[Finding]:
    try:
        read(path)
    except _WRONG as error:
        text = str(error)
        yield Finding(path, text.removeprefix(f"{path} ").removeprefix(f"{path}: "))


def _check_epochs(files: FileSystem, path: str) -> None:
    entries = [(int(epoch), int(start)) for epoch, start in read_entries(files, path, 2)]
    if entries != sorted(dict(entries).items()):
        raise CorruptCheckpoint(f"{path} has epochs that do not rise")


def _check_txn_index(files: FileSystem, path: str) -> None:
    entries = segment_dump.dump_txn_index(files, path)
    ends = [each.last_offset for each in entries]
    if any(each.version != 0 for each in entries):
        raise CorruptCheckpoint(f"{path} has entries of an unknown version")
    if any(later <= earlier for earlier, later in pairwise(ends)):
        raise CorruptCheckpoint(f"{path} has markers that do not rise")


def _is_partition(files: FileSystem, path: str) -> bool:
    return any(name.endswith(names.LOG) for name in files.list_dir(path))

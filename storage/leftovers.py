"""What lies in a partition directory when a log is opened: segments, and files that a crash left behind.

A cleaning or a split that was interrupted is finished if its new files were complete (all `.swap`), else
undone (`.cleaned`). Files that wait for deletion (`.deleted`) go, and so do unfinished temporary files,
indexes without a log, and producer snapshots that no segment begins at, but for the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.files import FileSystem
from storage import names, scan
from storage.errors import CorruptLog
from storage.segment import Segment

if TYPE_CHECKING:
    from storage.local_log import LocalLog

_INDEXES = (names.OFFSET_INDEX, names.TIME_INDEX, names.TXN_INDEX)


def remove_leftovers(files: FileSystem, directory: str) -> list[str]:
    """Finish or undo what a crash interrupted (deletion, cleaning, splitting); the files that remain.

    What it did is on the disk before it returns: half of it must not come back after the next crash.
    """
    found = files.list_dir(directory)
    if not any(name.endswith((names.DELETED, names.CLEANED, names.SWAP, names.TEMPORARY)) for name in found):
        return found
    gone = [n for n in found if n.endswith((names.DELETED, names.TEMPORARY))]
    gone = [n for n in gone if not n.endswith(".checkpoint" + names.DELETED)]
    cleaned = [n for n in found if n.endswith(names.CLEANED)]
    swap = [n for n in found if n.endswith(names.SWAP)]
    if cleaned:
        lowest = min(names.offset_of(n) for n in cleaned)
        unfinished = [n for n in swap if names.offset_of(n) >= lowest]
        gone += cleaned + unfinished
        swap = [n for n in swap if n not in unfinished]
    gone += _replaced_by(files, directory, found, swap)
    for name in gone:
        files.remove(f"{directory}/{name}")
    for name in swap:
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")
    if swap:
        files.sync_dir(directory)
    return files.list_dir(directory)


def _replaced_by(files: FileSystem, directory: str, found: list[str], swap: list[str]) -> list[str]:
    """The files whose offsets finished `.swap` segments cover."""
    logs = [n for n in swap if n.endswith(names.LOG + names.SWAP)]
    if not logs:
        return []
    end = 0
    for name in logs:
        handle = files.open(f"{directory}/{name}")
        end = max(end, names.offset_of(name))
        try:
            for facts in scan.scan(handle, 0, handle.size()):
                end = max(end, facts.last_offset + 1)
        except CorruptLog:
            pass  # recovery will say so; what lies behind is covered by nothing
        finally:
            handle.close()
    start = min(names.offset_of(n) for n in swap)
    numbered = [n for n in found if n.endswith((names.LOG, *_INDEXES))]
    return [n for n in numbered if start <= names.offset_of(n) < end]


def open_segments(local: LocalLog, found: list[str], now_ms: int) -> list[Segment]:
    """A segment for each `.log` file; indexes and snapshots that belong to none are removed.

    Raises ValueError for a file name without an offset.
    """
    bases = {names.offset_of(n) for n in found if n.endswith(names.LOG)}
    for name in found:
        if name.endswith(_INDEXES) and names.offset_of(name) not in bases:
            local.files.remove(f"{local.directory}/{name}")
    snapshots = [names.offset_of(n) for n in found if n.endswith(names.SNAPSHOT)]
    last = max(bases, default=0)
    for offset in snapshots:
        if offset not in bases and not (offset == max(snapshots) > last):
            local.files.remove(f"{local.directory}/{names.segment_file(offset, names.SNAPSHOT)}")
    return [Segment(local.files, local.directory, base, now_ms=now_ms) for base in sorted(bases)]

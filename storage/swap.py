"""Replacing segments of a log by one that was written beside them, in Kafka's order, so that a crash between
any two steps leaves either the old or the new ones (`leftovers.py` reads the traces).

New files are called `.cleaned` while they are written. `.cleaned` becomes `.swap`: from here on the new
segment counts. The old files become `.deleted`, then `.swap` is taken off. Readers find the one or the other:
nothing awaits in between. The caller syncs the directory afterwards.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from storage import names
from storage.segment import Segment

if TYPE_CHECKING:
    from runtime.files import FileSystem
    from storage.local_log import LocalLog

_SUFFIXES = (names.LOG, names.OFFSET_INDEX, names.TIME_INDEX, names.TXN_INDEX)


def swap_in(local: LocalLog, base_offset: int, old: list[Segment], now_ms: int) -> Segment:
    """Let the `.cleaned` files at `base_offset` take the place of `old`, the first of which has that base.

    Raises OSError: then the directory must not be used any further without a new start.
    """
    assert old[0].base_offset == base_offset
    files = local.files
    stem = f"{local.directory}/{names.segment_file(base_offset, '')}"
    suffixes = [suffix for suffix in _SUFFIXES if files.exists(stem + suffix + names.CLEANED)]
    # Log first: it is what says that a swap is complete.
    for suffix in suffixes:
        files.rename(stem + suffix + names.CLEANED, stem + suffix + names.SWAP)
    created = old[-1].created_ms
    local.segments.swapping = True
    try:
        local.set_aside(old, now_ms)
        for suffix in suffixes:
            files.rename(stem + suffix + names.SWAP, stem + suffix)
        segment = Segment(files, local.directory, base_offset, now_ms=created)
        local.segments.add(segment)
    finally:
        local.segments.swapping = False
    _set_snapshots_aside(local, old, now_ms)
    return segment


def _set_snapshots_aside(local: LocalLog, old: list[Segment], now_ms: int) -> None:
    """Producer snapshots of bases that are no segment's any more."""
    paths = []
    for segment in old[1:]:
        path = f"{local.directory}/{names.segment_file(segment.base_offset, names.SNAPSHOT)}"
        if local.files.exists(path):
            local.files.rename(path, path + names.DELETED)
            paths.append(path + names.DELETED)
    local.doom(paths, now_ms)


def remove_cleaned(files: FileSystem, directory: str) -> None:
    """Take away what a pass that was broken off has written."""
    with suppress(FileNotFoundError):
        for name in files.list_dir(directory):
            if name.endswith(names.CLEANED):
                files.remove(f"{directory}/{name}")

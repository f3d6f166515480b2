"""Segments whose offsets reach further above their base than an index can tell: they are split.

Kafka has written such segments (KAFKA-6264, before 1.1.1), by compaction that joined too many of them. Every
piece takes batches as far as they fit and is named by its first one. The steps are those of a cleaning
(`swap.py`), so a crash between any two of them leaves the old segment or all the new ones (`leftovers.py`).
The pieces get no indexes here: loading makes those of a segment that has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage import names, scan
from storage.errors import CorruptLog
from storage.offset_index import RELATIVE_MAX
from storage.segment import Segment

if TYPE_CHECKING:
    from runtime.files import FileSystem

_COPY_BYTES = 1 << 20
_SUFFIXES = (names.LOG, names.OFFSET_INDEX, names.TIME_INDEX, names.TXN_INDEX)


def overflows(segment: Segment) -> bool:
    """Whether the end of a segment does not fit its indexes; reads from the last index entry on."""
    try:
        return segment.find_end_offset() - 1 - segment.base_offset > RELATIVE_MAX
    except CorruptLog:
        return False


def split(files: FileSystem, segment: Segment) -> list[int]:
    """Put segments that fit in the place of one that does not; their base offsets.

    What is damaged stays at the end of the last one, for recovery to cut. The segment must not be used any
    more. ValueError for one that fits: splitting it would not end. Raises OSError.
    """
    pieces = _pieces(segment)
    if len(pieces) < 2 and (not pieces or pieces[0][0] == segment.base_offset):
        raise ValueError(f"{segment.path(names.LOG)} has no offset that does not fit")
    directory = segment.directory
    for base, start, end in pieces:
        _copy(files, segment, f"{directory}/{names.segment_file(base, names.LOG)}{names.CLEANED}", start, end)
    files.sync_dir(directory)
    paths = [f"{directory}/{names.segment_file(base, names.LOG)}" for base, _, _ in reversed(pieces)]
    for path in paths:
        files.rename(path + names.CLEANED, path + names.SWAP)
    files.sync_dir(directory)
    segment.close_files()
    for suffix in _SUFFIXES:
        if files.exists(segment.path(suffix)):
            files.remove(segment.path(suffix))
    for path in paths:
        files.rename(path + names.SWAP, path)
    files.sync_dir(directory)
    return [base for base, _, _ in pieces]


def _pieces(segment: Segment) -> list[tuple[int, int, int]]:
    """Base offset, first and last position (exclusive) of each."""
    starts: list[tuple[int, int]] = []
    try:
        for facts in scan.scan(segment.handle, 0, segment.size):
            if not starts or facts.last_offset - starts[-1][0] > RELATIVE_MAX:
                fits = not starts and facts.last_offset - segment.base_offset <= RELATIVE_MAX
                starts.append((segment.base_offset if fits else facts.base_offset, facts.position))
    except CorruptLog:
        pass
    ends = [position for _, position in starts[1:]] + [segment.size]
    return [(base, start, end) for (base, start), end in zip(starts, ends, strict=True)]


def _copy(files: FileSystem, segment: Segment, path: str, start: int, end: int) -> None:
    handle = files.open(path, create=True)
    try:
        if handle.size():  # of a split that was broken off
            handle.truncate(0)
        for at in range(start, end, _COPY_BYTES):
            handle.append([segment.handle.read_at(at, min(_COPY_BYTES, end - at))])
        handle.sync()
    finally:
        handle.close()

"""Whether the index files of a segment can be right, by their sizes and their last entries.

Indexes of what was synced are used as they are, so one that is damaged would send readers astray. Looking at
the ends of both costs two small reads; garbage, a torn write or the index of another segment shows there. A
tail of zeros, as a crashed Kafka leaves it, is no damage: it does not count as entries. The index of aborted
transactions, where there is one, is short and read wholly.
"""

from __future__ import annotations

from collections.abc import Collection
from struct import Struct

from runtime.files import FileSystem
from storage import names
from storage.offset_index import OffsetIndex
from storage.segment import Segment
from storage.time_index import TimeIndex


def index_problem(
    files: FileSystem, segment: Segment, present: Collection[str], end_offset: int
) -> str | None:
    """What is wrong with the indexes of a segment that holds offsets below `end_offset`; None if nothing is.

    `present` are the names of all files in the directory. Raises OSError.
    """
    for suffix, entry in ((names.OFFSET_INDEX, OffsetIndex.ENTRY), (names.TIME_INDEX, TimeIndex.ENTRY)):
        if names.segment_file(segment.base_offset, suffix) not in present:
            return f"there is no {suffix} file"
        path = segment.path(suffix)
        first, last, torn = _ends(files, path, entry)
        if torn:
            return f"{path} is torn"
        if not any(last):
            continue
        relative, other = (last[0], last[1]) if suffix == names.OFFSET_INDEX else (last[1], last[0])
        if not 0 <= relative < end_offset - segment.base_offset:
            return f"{path} ends with offset {segment.base_offset + relative}, the log with {end_offset}"
        if suffix == names.OFFSET_INDEX and not 0 <= other < segment.size:
            return f"{path} points to position {other} of {segment.size}"
        if suffix == names.TIME_INDEX and other < first[0]:
            return f"the last timestamp of {path} is below the first"
    if names.segment_file(segment.base_offset, names.TXN_INDEX) in present:
        return segment.txn_index.problem()
    return None


def _ends(files: FileSystem, path: str, entry: Struct) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """The first and the last entry, zeros where there is none; whether the size is no multiple of theirs."""
    size = files.size(path)
    if size < entry.size:  # as most offset indexes of thousands of small logs: nothing is opened
        return (0, 0), (0, 0), size > 0
    handle = files.open(path)
    try:
        first = entry.unpack(handle.read_at(0, entry.size))
        last = entry.unpack(handle.read_at(size // entry.size * entry.size - entry.size, entry.size))
        return first, last, size % entry.size > 0
    finally:
        handle.close()

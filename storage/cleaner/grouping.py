"""Which segments become one: cleaning makes segments small, and neighbours are put together again.

A group is as many consecutive segments as fit into segment.bytes, with each kind of index within
segment.index.bytes, and with no offset more than 2^31-1 above the first base, which an index could not hold.
Nor is it more segments than the event loop can replace in one go: about 0.1 ms each for renaming their files.
The next pass puts the new ones together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from storage.offset_index import RELATIVE_MAX

SEGMENTS_MAX = 128


class Source(NamedTuple):
    """A segment that is to be cleaned. `path` is that of its log file."""

    path: str
    base_offset: int
    size: int
    offset_index_bytes: int
    time_index_bytes: int
    mtime_ms: int


def group(
    sources: Sequence[Source], end_offset: int, segment_bytes: int, index_bytes: int
) -> list[list[Source]]:
    """Split consecutive segments, of which the last ends at `end_offset`, into groups."""
    groups: list[list[Source]] = []
    size = offset_index = time_index = 0
    for number, source in enumerate(sources):
        following = sources[number + 1].base_offset if number + 1 < len(sources) else end_offset
        fits = (
            bool(groups)
            and len(groups[-1]) < SEGMENTS_MAX
            and size + source.size <= segment_bytes
            and offset_index + source.offset_index_bytes <= index_bytes
            and time_index + source.time_index_bytes <= index_bytes
            # A segment without batches has no offset that could be too far.
            and (not source.size or following - 1 - groups[-1][0].base_offset <= RELATIVE_MAX)
        )
        if fits:
            groups[-1].append(source)
        else:
            groups.append([source])
            size = offset_index = time_index = 0
        size += source.size
        offset_index += source.offset_index_bytes
        time_index += source.time_index_bytes
    return groups

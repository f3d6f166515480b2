"""Answering reads: which bytes of a log belong to a fetch.

A read covers one segment and begins with the batch that contains the offset, which may start before it. It
ends at whole batches where that costs nothing to know: at the end of what is visible, at an index entry, or,
for small answers, by walking. The newest bytes come from memory, small older ones by pread, everything larger
as a region of the file for sendfile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from runtime.files import Buffer, FileRegion
from storage.errors import OffsetOutOfRange
from storage.scan import Located, whole_batches

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog
    from storage.segment import Segment

MEMORY_BYTES_MAX = 32 << 10  # above, sendfile is cheaper than a join and a copy into the socket
PREAD_BYTES_MAX = 8 << 10

SliceData: TypeAlias = bytes | list[Buffer] | FileRegion


class LogSlice:
    """Some consecutive batches. `data` is to be sent as it is; `length` is its size in bytes.

    `segment_base` and `position` say where it begins; with them the bytes between two places of one segment
    can be counted. `first_incomplete`: there are batches, but the first is larger than allowed.
    """

    __slots__ = ("data", "first_incomplete", "length", "position", "segment_base")

    def __init__(
        self,
        data: SliceData,
        length: int,
        segment_base: int,
        position: int,
        first_incomplete: bool = False,
    ) -> None:
        self.data = data
        self.length = length
        self.segment_base = segment_base
        self.position = position
        self.first_incomplete = first_incomplete

    def to_bytes(self) -> bytes:
        """The bytes in memory, wherever they are now."""
        data = self.data
        if isinstance(data, FileRegion):
            return data.read()
        return data if isinstance(data, bytes) else b"".join(data)


def read_log(log: PartitionLog, offset: int, max_bytes: int, upto: int, min_one: bool) -> LogSlice:
    """Batches from `offset` on that end at or below offset `upto`, at most `max_bytes` of them.

    `min_one`: the first batch comes whole even if it is larger. Raises OffsetOutOfRange outside
    [start_offset, end_offset].
    """
    tail = log.tail
    end_offset = log.end_offset
    if upto > end_offset:
        upto = end_offset
    if tail.oldest <= offset < upto and offset >= log.start_offset:
        first, last = tail.find(offset, upto)
        starts = tail.starts
        begin = starts[first]
        length = starts[last] - begin
        if length > max_bytes:
            last = _last_within(starts, first, last, begin + max_bytes)
            if last == first:
                if not min_one:
                    return LogSlice(b"", 0, log.active.base_offset, begin, True)
                last = first + 1
            length = starts[last] - begin
        if length <= MEMORY_BYTES_MAX:
            return LogSlice(tail.batches[first:last], length, log.active.base_offset, begin)
        segment = log.active
        return LogSlice(FileRegion(segment.handle, begin, length), length, segment.base_offset, begin)
    if offset < log.start_offset or offset > end_offset:
        raise OffsetOutOfRange(
            f"offset {offset} of {log.name} is outside the range {log.start_offset} to {end_offset}"
        )
    if offset >= upto:
        active = log.active
        return LogSlice(b"", 0, active.base_offset, active.size)
    return _read_files(log, offset, max_bytes, upto, min_one)


def _last_within(starts: list[int], first: int, last: int, limit: int) -> int:
    """The greatest number in first..last whose start is not above `limit`."""
    low, high = first, last
    while low < high:
        middle = (low + high + 1) // 2
        if starts[middle] <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _read_files(log: PartitionLog, offset: int, max_bytes: int, upto: int, min_one: bool) -> LogSlice:
    segments = log.local.segments
    segment = segments.floor(offset)
    assert segment is not None, f"{log.name} has no segment for {offset}"
    while True:
        found = segment.locate(offset, max_bytes if max_bytes <= PREAD_BYTES_MAX else 0)
        if found is not None:
            break
        following = segments.after(segment)
        if following is None:
            return LogSlice(b"", 0, segment.base_offset, segment.size)
        segment = following
    begin = found.position
    limit = visible_end(log, segment, upto)
    if begin + found.size > limit:
        return LogSlice(b"", 0, segment.base_offset, begin)
    if found.size > max_bytes:
        if not min_one:
            return LogSlice(b"", 0, segment.base_offset, begin, True)
        return _slice(segment, found, found.size)
    if limit - begin <= max_bytes:
        return _slice(segment, found, limit - begin)
    if max_bytes > PREAD_BYTES_MAX:
        end = segment.offset_index.position_up_to(begin + max_bytes)
        if end >= begin + found.size:
            return _slice(segment, found, end - begin)
    return _whole_batches(segment, found, max_bytes)


def _slice(segment: Segment, found: Located, length: int) -> LogSlice:
    """`length` bytes from the batch found on, from the window if it has them."""
    begin, at = found.position, found.at
    if length <= PREAD_BYTES_MAX:
        data = found.window[at : at + length]
        if len(data) < length:
            data = segment.handle.read_at(begin, length)
        return LogSlice(data, length, segment.base_offset, begin)
    return LogSlice(FileRegion(segment.handle, begin, length), length, segment.base_offset, begin)


def _whole_batches(segment: Segment, found: Located, max_bytes: int) -> LogSlice:
    """What fits of the batches from the one found on, which itself does."""
    window, at = found.window, found.at
    if len(window) - at < max_bytes:
        window, at = segment.handle.read_at(found.position, max_bytes), 0
    length = whole_batches(window, at, at + max_bytes) - at
    if length <= PREAD_BYTES_MAX:
        return LogSlice(window[at : at + length], length, segment.base_offset, found.position)
    region = FileRegion(segment.handle, found.position, length)
    return LogSlice(region, length, segment.base_offset, found.position)


def visible_end(log: PartitionLog, segment: Segment, upto: int) -> int:
    """The file position in `segment` up to which batches end at or below offset `upto`."""
    if upto >= log.end_offset:
        return segment.size
    following = log.local.segments.after(segment)
    if following is not None and following.base_offset <= upto:
        return segment.size
    found = segment.locate(upto)
    return segment.size if found is None else found.position

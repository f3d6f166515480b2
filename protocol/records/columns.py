"""Runs of equally shaped records, checked by columns instead of one by one.

Records of one stride lie like the rows of a table: `buf[start::stride]` is one column, gathered in C. A
record whose shape is known (the template) proves the records behind it, as far as their columns agree with
it:

- bytes that encode lengths (outer, key, value, header count, header fields) must equal the template's;
- offset deltas must continue the template's by one, which fixes their bytes too;
- time deltas must take as many bytes as the template's, with continuation bits to match.

Then each of them is as consistent as the template. A run is first tried over few records and reaches farther
each time it holds, so that bytes made to break runs cost no more than a constant factor.
"""

from __future__ import annotations

import sys

from protocol.records.varints import read_varint

LEAST_RUN = 12  # below this the second gear of the walk is as fast
MOST_RUN = 8192
_FIRST_REACH = 64
_MOST_FIXED = 48  # lengths in a template; a record with more headers than this is walked singly

_HIGH_BYTES = bytes(range(128, 256))
# Bytes of the varint of offset delta i, for i in a row: lowest byte of several (period 64), second byte.
_ONLY = bytes(range(0, 128, 2))
_LOWEST = bytes(range(128, 256, 2)) * (MOST_RUN // 64 + 1)
_SECOND_LAST = b"".join(bytes([group]) * 64 for group in range(128))
_SECOND_MIDDLE = _SECOND_LAST.translate(bytes(byte | 128 for byte in range(128)) + _HIGH_BYTES)


class Template:
    """Where in a record, seen from its first byte, the bytes lie that its shape consists of."""

    __slots__ = ("fixed", "key_is_null", "offset_at", "offset_width", "time_at", "time_width")

    def __init__(self, buf: bytes | bytearray, at: int, end: int) -> None:
        """Take the shape of the record in buf[at:end], which is known to be sound."""
        _, pos = read_varint(buf, at, end)
        self.fixed = list(range(pos - at))
        self.time_at = pos + 1 - at
        pos = _after_varint(buf, pos + 1)
        self.offset_at = pos - at
        self.time_width = self.offset_at - self.time_at
        pos = _after_varint(buf, pos)
        self.offset_width = pos - at - self.offset_at
        self.key_is_null = False
        for field in range(2):
            length, after = read_varint(buf, pos, end)
            self.fixed += range(pos - at, after - at)
            if length < 0:
                length = 0
                self.key_is_null = self.key_is_null or not field
            pos = after + length
        headers, after = read_varint(buf, pos, end)
        self.fixed += range(pos - at, after - at)
        pos = after
        for _ in range(min(2 * headers, _MOST_FIXED)):
            length, after = read_varint(buf, pos, end)
            self.fixed += range(pos - at, after - at)
            pos = after + max(length, 0)


class RunFinder:
    """Finds runs for one walk; remembers how far it is worth looking."""

    __slots__ = ("reach",)

    def __init__(self) -> None:
        self.reach = _FIRST_REACH

    def count_run(
        self, buf: bytes | bytearray, at: int, end: int, stride: int, index: int, stop: int
    ) -> tuple[int, int, bool]:
        """How many records behind the sound one in buf[at:at+stride] are sound because they look like it.

        `index` is the number of the first of them, `stop` the number of records wanted at most. Returns the
        number, the largest zigzag number among their time deltas, and whether their keys are null.
        """
        count = min(stop - index, (end - at) // stride - 1, self.reach)
        first = buf[at]
        if count < LEAST_RUN or buf[at + stride] != first or buf[at + LEAST_RUN * stride] != first:
            return 0, 0, False
        shape = Template(buf, at, at + stride)
        if len(shape.fixed) > _MOST_FIXED or shape.time_width > 8:
            return 0, 0, False
        start = at + stride
        wanted = count
        for place in shape.fixed:
            begin = start + place
            column = buf[begin : begin + (count - 1) * stride + 1 : stride]
            same = buf[at + place : at + place + 1]
            if column != same * count:
                count -= len(column.lstrip(same))
                if count < LEAST_RUN:
                    self.reach = _FIRST_REACH
                    return 0, 0, False
        count = in_sequence(buf, start + shape.offset_at, stride, shape.offset_width, index, count)
        high = _largest_time(buf, start + shape.time_at, stride, shape.time_width, count) if count else -1
        if high < 0:
            self.reach = _FIRST_REACH
            return 0, 0, False
        if count == wanted:
            self.reach = min(4 * self.reach, MOST_RUN)
        elif wanted > _FIRST_REACH:
            self.reach = _FIRST_REACH
        return count, high, shape.key_is_null


def in_sequence(buf: bytes | bytearray, start: int, stride: int, width: int, index: int, count: int) -> int:
    """How many of the offset deltas from `start` on are index, index + 1... in `width` bytes; all or none."""
    if width == 1:
        count = min(count, 64 - index)
        expected = [_ONLY[index : index + count]]
    elif width == 2:
        count = min(count, 8192 - index)
        low = index & 63
        expected = [_LOWEST[low : low + count], _SECOND_LAST[index : index + count]]
    elif width == 3:
        low, middle, top = index & 63, index & 8191, index >> 13
        count = min(count, 8192 - middle)
        if top > 127:
            return 0
        expected = [
            _LOWEST[low : low + count],
            _SECOND_MIDDLE[middle : middle + count],
            bytes([top]) * count,
        ]
    else:
        return 0
    if count <= 0:
        return 0
    for place, column in enumerate(expected, start):
        if buf[place : place + (count - 1) * stride + 1 : stride] != column:
            return 0
    return count


def _largest_time(buf: bytes | bytearray, start: int, stride: int, width: int, count: int) -> int:
    """Largest zigzag number among the time deltas of `width` bytes; -1 if one has another width."""
    span = (count - 1) * stride + 1
    last = buf[start + width - 1 : start + width - 1 + span : stride]
    if not last.isascii():
        return -1
    if width == 1:
        return last[0] if last == last[:1] * count else max(last)
    cell = 2 if width == 2 else 8
    table = bytearray(cell * count)
    order = range(cell) if sys.byteorder == "little" else range(cell - 1, -1, -1)
    for place, lane in zip(range(start, start + width), order, strict=False):
        column = buf[place : place + span : stride]
        if place < start + width - 1 and column.translate(None, _HIGH_BYTES):
            return -1
        table[lane::cell] = column
    packed: int = max(memoryview(table).cast("H" if cell == 2 else "Q"))
    raw = 0
    for group in range(width):
        raw |= (packed >> 8 * group & 0x7F) << 7 * group
    return raw


def _after_varint(buf: bytes | bytearray, at: int) -> int:
    while buf[at] > 127:
        at += 1
    return at + 1

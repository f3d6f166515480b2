"""The records of one batch as columns: what the cleaner wants to know of them, and where each one lies.

Most batches hold runs of records of one shape, which lie like the rows of a table: their length bytes are
compared column by column in C, and the keys of a run are cut out by one `unpack`. Anything else is read
record by record. Values are never touched. The bytes were checked when they were produced; what does not
parse all the same raises BadSection. Measured: 15 records of 1 KiB 7 us, 137 of 100 bytes 25 us; see
`record_layout.py` for what is quicker with batches that are like the ones before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from struct import Struct
from typing import TypeAlias

from protocol.records.columns import in_sequence
from protocol.records.varints import BadVarint, read_varint, read_varlong

_LEAST_RUN = 4
_MOST_RUN = 1024
_MOST_WAIT = 64
_HIGH_BYTES = bytes(range(128, 256))

Piece: TypeAlias = tuple[int, int, int, int, int, int, int, int]
"""A run of records of one shape: first row, position in the section, size of a record, number of records, and
where in each the time delta is, how many bytes it takes, where the key is and how many bytes that takes (-1:
null)."""


class BadSection(ValueError):
    """The bytes do not hold the records that the header counts."""


@dataclass(slots=True)
class RecordTable:
    """Row i is record i of the section that begins at `start` of `buf`, which has to stay as it is.

    A null key stands as b"" and in `null_keys`; that and `null_values` are rows. `deltas`: offsets relative
    to the batch's base offset, None if they are the row numbers. `longest_key` in bytes.
    """

    buf: bytes
    start: int
    count: int
    keys: list[bytes] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    null_values: list[int] = field(default_factory=list)
    null_keys: list[int] = field(default_factory=list)
    deltas: list[int] | None = None
    longest_key: int = 0

    def offsets(self, base_offset: int) -> Sequence[int]:
        """Of all records, absolute."""
        if self.deltas is None:
            return range(base_offset, base_offset + self.count)
        return [base_offset + delta for delta in self.deltas]

    def cut(self, rows: Sequence[int]) -> bytes:
        """The bytes of these records, whose numbers ascend, and of no others."""
        buf, parts = self.buf, list[bytes]()
        for first, at, size, count, *_ in self.pieces:
            some = rows if count == self.count else _between(rows, first, first + count)
            at += self.start
            if len(some) == count:
                parts.append(buf[at : at + size * count])
            else:
                at -= first * size
                parts += [buf[at + row * size : at + row * size + size] for row in some]
        return b"".join(parts)

    def latest(self, rows: Sequence[int]) -> int:
        """The greatest time delta of these records, at least one."""
        buf, raw = self.buf, list[int]()  # zigzag numbers
        for first, at, size, count, time_at, width, *_ in self.pieces:
            some = rows if count == self.count else _between(rows, first, first + count)
            at += self.start + time_at - first * size
            if width == 1:
                raw += [buf[at + row * size] for row in some]
            elif width == 2:
                raw += [buf[at + row * size] & 127 | buf[at + row * size + 1] << 7 for row in some]
            else:
                raw += [_zigzag(read_varlong(buf, at + row * size, len(buf))[0]) for row in some]
        greatest = max(raw)
        if not greatest & 1:  # they grow with the distance from zero
            return greatest >> 1
        return max([(each >> 1) ^ -(each & 1) for each in raw])


def _between(rows: Sequence[int], first: int, end: int) -> Sequence[int]:
    return rows[bisect_left(rows, first) : bisect_left(rows, end)]


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else (-value << 1) - 1


def read_table(buf: bytes, start: int, end: int, count: int) -> RecordTable:
    """Take the plain records section in buf[start:end] apart. Raises BadSection."""
    table = RecordTable(buf, start, count)
    at, row = start, 0
    wait = failures = 0
    try:
        while row < count:
            begin = at
            size, pos = _varint(buf, at, end)
            at = pos + size
            if size < 0 or at > end:
                raise BadSection(f"record {row} takes {size} bytes with {end - pos} left")
            time_at = pos + 1
            pos = time_at
            while buf[pos] > 127:
                pos += 1
            delta_at = pos + 1
            delta, key_at = _varint(buf, delta_at, at)
            key_size, key_begin = _varint(buf, key_at, at)
            value_at = key_begin + key_size if key_size > 0 else key_begin
            if value_at >= at:
                raise BadSection(f"the key of record {row} leaves it")
            odd_value = buf[value_at] & 1 and _varint(buf, value_at, at)[0] < 0
            run = 1
            if wait:
                wait -= 1
            elif count - row > _LEAST_RUN and key_size >= 0 and not odd_value:
                places = (time_at, delta_at, key_at, key_begin, value_at)
                run += _run(buf, begin, at - begin, min(count - row, (end - begin) // (at - begin)) - 1,
                            delta, places)  # fmt: skip
                wait = failures = min(2 * failures + 1, _MOST_WAIT) if run == 1 else 0
            piece = (row, begin - start, at - begin, run, time_at - begin, delta_at - time_at,
                     key_begin - begin, key_size)  # fmt: skip
            _add(table, piece, delta)
            if odd_value:
                table.null_values.append(row)
            row += run
            at = begin + run * (at - begin)
    except (IndexError, BadVarint) as error:
        raise BadSection(f"record {row}: {error}") from error
    if at != end:
        raise BadSection(f"{end - at} bytes are left over behind {count} records")
    return table


def _add(table: RecordTable, piece: Piece, delta: int) -> None:
    """Take a piece over; `delta` is the offset delta of its first record."""
    row, at, size, run, _, _, key_at, key_size = piece
    keys = table.keys
    at += table.start + key_at
    if key_size < 0:
        table.null_keys.append(row)
        keys.append(b"")
    elif run == 1:
        keys.append(table.buf[at : at + key_size])
    else:
        keys += _keys(key_size, size - key_size, run).unpack_from(table.buf, at)
    if key_size > table.longest_key:
        table.longest_key = key_size
    table.pieces.append(piece)
    if table.deltas is not None:
        table.deltas += range(delta, delta + run)
    elif delta != row:
        table.deltas = [*range(row), *range(delta, delta + run)]


@lru_cache(maxsize=128)
def _keys(size: int, gap: int, count: int) -> Struct:
    """So many keys, with so many bytes between each two."""
    return Struct(f"{size}s{gap}x" * (count - 1) + f"{size}s")


def _varint(buf: bytes, at: int, end: int) -> tuple[int, int]:
    byte = buf[at]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    second = buf[at + 1]
    if second < 128:
        raw = byte & 127 | second << 7
        return (raw >> 1) ^ -(raw & 1), at + 2
    return read_varint(buf, at, end)


def _run(
    buf: bytes, begin: int, size: int, count: int, delta: int, places: tuple[int, int, int, int, int]
) -> int:
    """How many of the `count` records behind the one at `begin` look like it.

    `places`: where its time delta, offset delta, key length, key and value length are.
    """
    time_at, delta_at, key_at, key_begin, value_at = places
    count = min(count, _MOST_RUN)
    if count < _LEAST_RUN:
        return 0
    for place in (*range(begin, time_at - 1), *range(key_at, key_begin), value_at):
        column, same = buf[place + size : place + count * size + 1 : size], buf[place : place + 1]
        if column != same * count:
            count -= len(column.lstrip(same))
            if count < _LEAST_RUN:
                return 0
    last = delta_at - 1
    for place in range(time_at, last):  # bytes of the time delta that others follow
        if buf[place + size : place + count * size + 1 : size].translate(None, _HIGH_BYTES):
            return 0
    if not buf[last + size : last + count * size + 1 : size].isascii():
        return 0
    return in_sequence(buf, delta_at + size, size, key_at - delta_at, delta + 1, count) if delta >= 0 else 0

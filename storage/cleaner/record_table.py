"""The records of one batch as columns: what the cleaner wants to know of them, and where each one lies.

Most batches hold runs of records of one shape, which lie like the rows of a table: their length bytes are
compared column by column in C, and the keys cut out at fixed distances. Anything else is read record by
record. Values are never touched. The bytes were checked when they were produced; what does not parse all the
same raises BadSection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.records.varints import BadVarint, read_varint, read_varlong

_LEAST_RUN = 4
_MOST_WAIT = 64
_ONE_BYTE_DELTAS = bytes(range(0, 128, 2))
_HIGH_BYTES = bytes(range(128, 256))


class BadSection(ValueError):
    """The bytes do not hold the records that the header counts."""


@dataclass(slots=True)
class RecordTable:
    """Row i is record i. `starts` has one more entry: the end of the section.

    `deltas` are offsets relative to the batch's base offset. `null_values` and `null_keys` are row numbers.
    """

    keys: list[bytes]
    deltas: list[int]
    starts: list[int]
    null_values: list[int]
    null_keys: list[int]

    def time_deltas(self, section: bytes, rows: Sequence[int]) -> list[int]:
        """The time deltas of these records."""
        found = []
        for row in rows:
            at = self.starts[row]
            while section[at] > 127:
                at += 1
            at += 2  # past the length and the record's attributes
            byte = section[at]
            if byte < 128:
                found.append((byte >> 1) ^ -(byte & 1))
            else:
                found.append(read_varlong(section, at, len(section))[0])
        return found


def read_table(section: bytes, count: int) -> RecordTable:
    """Take a plain records section apart. A null key stands as b"" and in `null_keys`."""
    table = RecordTable([], [], [], [], [])
    keys, deltas, starts = table.keys, table.deltas, table.starts
    at, end, row = 0, len(section), 0
    wait = failures = 0
    try:
        while row < count:
            begin = at
            size, pos = _varint(section, at, end)
            at = pos + size
            if size < 0 or at > end:
                raise BadSection(f"record {row} takes {size} bytes with {end - pos} left")
            time_at = pos + 1
            pos = time_at
            while section[pos] > 127:
                pos += 1
            delta_at = pos + 1
            delta, key_at = _varint(section, delta_at, at)
            key_size, key_begin = _varint(section, key_at, at)
            value_at = key_begin + key_size if key_size > 0 else key_begin
            value_byte = section[value_at]
            starts.append(begin)
            deltas.append(delta)
            if key_size >= 0:
                keys.append(section[key_begin : key_begin + key_size])
            else:
                keys.append(b"")
                table.null_keys.append(row)
            if value_byte & 1 and _varint(section, value_at, at)[0] < 0:
                table.null_values.append(row)
            if value_at >= at:
                raise BadSection(f"the key of record {row} leaves it")
            row += 1
            if wait:
                wait -= 1
            elif count - row >= _LEAST_RUN and key_size >= 0 and not value_byte & 1:
                run = _run(
                    section, begin, at - begin, min(count - row, (end - at) // (at - begin)), delta,
                    (time_at, delta_at, key_at, key_begin, value_at),
                )  # fmt: skip
                if run:
                    stride = at - begin
                    stop = at + run * stride
                    first_key = key_begin + stride
                    keys += [section[p : p + key_size] for p in range(first_key, stop, stride)]
                    deltas += range(delta + 1, delta + 1 + run)
                    starts += range(at, stop, stride)
                    row += run
                    at = stop
                    failures = 0
                else:
                    failures = min(2 * failures + 1, _MOST_WAIT)
                    wait = failures
    except (IndexError, BadVarint) as error:
        raise BadSection(f"record {row}: {error}") from error
    if at != end:
        raise BadSection(f"{end - at} bytes are left over behind {count} records")
    starts.append(end)
    return table


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
    buf: bytes, begin: int, stride: int, count: int, delta: int, places: tuple[int, int, int, int, int]
) -> int:
    """How many of the `count` records behind the one at `begin` look like it.

    `places`: where its time delta, offset delta, key length, key and value length are.
    """
    time_at, delta_at, key_at, key_begin, value_at = places
    if delta < 0 or delta > 8190:
        return 0
    delta_width = key_at - delta_at
    count = min(count, (63 if delta_width == 1 else 8191) - delta)
    if count < _LEAST_RUN or delta_width > 2:
        return 0
    for place in (*range(begin, time_at - 1), *range(key_at, key_begin), value_at):
        column, same = buf[place + stride : place + count * stride + 1 : stride], buf[place : place + 1]
        if column != same * count:
            count -= len(column.lstrip(same))
            if count < _LEAST_RUN:
                return 0
    span = count * stride
    last = delta_at - 1
    for place in range(time_at, last):  # bytes of the time delta that others follow
        if buf[place + stride : place + span + 1 : stride].translate(None, _HIGH_BYTES):
            return 0
    if not buf[last + stride : last + span + 1 : stride].isascii():
        return 0
    column = buf[delta_at + stride : delta_at + span + 1 : stride]
    if delta_width == 1:
        expected = _ONE_BYTE_DELTAS[delta + 1 : delta + 1 + count]
        return count if column == expected else 0
    wanted = range(2 * (delta + 1), 2 * (delta + 1 + count), 2)
    if column != bytes([raw & 127 | 128 for raw in wanted]):
        return 0
    high = buf[delta_at + 1 + stride : delta_at + 1 + span + 1 : stride]
    return count if high == bytes([raw >> 7 for raw in wanted]) else 0

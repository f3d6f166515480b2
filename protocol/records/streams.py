"""Walking and rewriting records sections that come in chunks, in bounded memory.

A compressed section is never decompressed as a whole: chunks are walked as they come, and only a record that
two chunks share is put together. A single record may take `RECORD_BYTES_MAX` plain bytes (or twice what a
batch may take on the wire, where that is more); beyond it the batch is refused as too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.compression import RECORD_BYTES_MAX, compressor, decompress_chunks, record_blocks
from protocol.records.crc import Buffer
from protocol.records.rules import BatchRules
from protocol.records.varints import append_varint, read_varint, read_varlong
from protocol.records.walk import RecordWalk, invalid, walk_record, wrong_count


def record_bytes_max(batch_bytes_max: int) -> int:
    """The plain bytes that one record of a compressed batch may take, given the limit on batches."""
    return max(RECORD_BYTES_MAX, 2 * batch_bytes_max)


def walk_section(codec: int, section: Buffer, count: int, walk: RecordWalk, rules: BatchRules) -> None:
    """Prove that a compressed section is exactly `count` records, none above `max_record_bytes`.

    Raises InvalidRecords. `walk` is left with what was found (see `walk.py`).
    """
    most = record_bytes_max(rules.max_message_bytes)
    for buf, end in record_blocks(decompress_chunks(codec, section), most):
        at = walk.step(buf, 0, len(buf), count)
        if at > rules.max_record_bytes:
            _refuse_large_records(buf, at, rules.max_record_bytes)
        if walk.index == count and at < len(buf):
            raise wrong_count(count, count)
        end.append(at)
    if walk.index < count:
        raise wrong_count(walk.index, count)


def _refuse_large_records(buf: Buffer, end: int, most: int) -> None:
    """Look at the lengths of the sound records in buf[:end]; 87 for one above the limit, as in Kafka 4.4."""
    at = 0
    while at < end:
        size, at = read_varint(buf, at, end)
        if size > most:
            raise invalid(f"A record takes {size} bytes after decompression, which exceeds {most}.")
        at += size


def sound_records(
    codec: int, section: Buffer, count: int, batch_bytes_max: int
) -> Iterator[tuple[Buffer, int, int, int, bool]]:
    """(buffer, position, position after, zigzag time delta, key is null) of each record of a section that
    passed the walk. The buffer is only valid until the next one is asked for.
    """
    index = 0
    for buf, end in record_blocks(decompress_chunks(codec, section), record_bytes_max(batch_bytes_max)):
        at = 0
        while index < count:
            after, raw, _, null = walk_record(buf, at, len(buf), index)
            if after == at:
                break
            yield buf, at, after, raw, null
            at = after
            index += 1
        end.append(at)


def recompress(chunks: Iterable[Buffer], codec: int, level: int | None, size_max: int) -> bytes:
    """The chunks as one section of at most `size_max` bytes; MESSAGE_TOO_LARGE where they take more."""
    parts: list[Buffer] = []
    size = 0
    stream = compressor(codec, level) if codec else None
    for chunk in chunks:
        part = stream.compress(chunk) if stream else chunk
        parts.append(part)
        size += len(part)
        if size > size_max:
            raise _too_large(size_max)
    if stream:
        part = stream.flush()
        parts.append(part)
        size += len(part)
        if size > size_max:
            raise _too_large(size_max)
    return b"".join(parts)


def renumbered(codec: int, section: Buffer, count: int, batch_bytes_max: int) -> Iterator[bytes]:
    """The records of a sound section with the offset deltas 0, 1, 2..., one by one."""
    records = sound_records(codec, section, count, batch_bytes_max)
    for index, (buf, at, after, _, _) in enumerate(records):
        _, begin = read_varint(buf, at, after)
        _, delta_at = read_varlong(buf, begin + 1, after)
        _, rest = read_varint(buf, delta_at, after)
        delta = bytearray()
        append_varint(delta, index)
        record = bytearray()
        append_varint(record, delta_at - begin + len(delta) + after - rest)
        record += buf[begin:delta_at]
        record += delta
        record += buf[rest:after]
        yield bytes(record)


def _too_large(size_max: int) -> InvalidRecords:
    return InvalidRecords(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The records take more than {size_max} bytes after they were converted for this topic.",
    )

"""Batches of a log file in windows, with room for batches that are larger than the window."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from runtime.files import FileHandle
from storage import scan
from storage.errors import CorruptLog
from storage.scan import BatchFacts

WINDOW_BYTES_MIN = 64 << 10
_LENGTH = Struct(">i")


def windows(
    handle: FileHandle, position: int, end: int, window_bytes: int
) -> Iterator[tuple[bytes, list[BatchFacts]]]:
    """Bytes from `position` to `end` of a closed segment, and the batches that lie wholly in them.

    Of each batch `facts.position` is that in the file; the first one of a window lies at its start. CRCs are
    checked. Raises CorruptLog for what is no batch, a wrong CRC, or a batch that leaves the file.
    """
    while position < end:
        data = handle.read_at(position, min(window_bytes, end - position))
        found, at = _batches(data, position)
        if not found:
            size = _size(data, position, end)
            data = handle.read_at(position, size)
            found, at = _batches(data, position)
            if not found:
                raise CorruptLog(f"a batch of {size} bytes with {len(data)} left in the file", position)
        yield data, found
        position += at


def _size(data: bytes, position: int, end: int) -> int:
    if len(data) < scan.PREFIX_BYTES:
        raise CorruptLog(f"{len(data)} bytes are no batch", position)
    size: int = _LENGTH.unpack_from(data, 8)[0] + 12
    if size < scan.SIZE_MIN + 12 or position + size > end:
        raise CorruptLog(f"a batch of {size} bytes with {end - position} left in the file", position)
    return size


def _batches(data: bytes, position: int) -> tuple[list[BatchFacts], int]:
    """The whole batches at the start of `data`, and where they end."""
    found: list[BatchFacts] = []
    at, end = 0, len(data)
    view = memoryview(data)
    while end - at >= scan.PREFIX_BYTES:
        size: int = _LENGTH.unpack_from(data, at + 8)[0] + 12
        if size < scan.SIZE_MIN + 12:
            raise CorruptLog(f"no batch has size {size}", position + at)
        if at + size > end:
            break
        if size < scan.V2_OVERHEAD:  # a small message of an old format
            facts = scan.facts_at(data[at : at + size].ljust(scan.V2_OVERHEAD, b"\0"), 0, position + at)
        else:
            facts = scan.facts_at(data, at, position + at)
        scan.check_crc(view[at : at + size], facts)
        found.append(facts)
        at += size
    return found, at

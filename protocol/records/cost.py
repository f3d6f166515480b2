"""How long the check of a produced batch may take, told from a glance at it.

The event loop checks what is sure to be quick; the rest goes to a thread. The walk costs up to 0.5 us a
record (1 us with headers), decompression 0.3-1 ms per MiB of plain bytes, and hostile bytes expand far: gzip
a thousandfold, lz4 255-fold, snappy 22-fold, zstd without end, which is why the blocks of a zstd frame are
looked through. The bounds are chosen so that ordinary batches of clients stay on the loop and nothing holds
it for more than about 10 ms (a gzip bomb of 16 KiB, the worst case, 20 ms).
"""

from __future__ import annotations

from struct import Struct

from protocol.records.batch import ATTRIBUTES_AT, CODEC_MASK, COUNT_AT, HEADER_SIZE
from protocol.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from protocol.records.crc import Buffer
from protocol.records.rules import KEEP_CODEC, BatchRules

QUICK_RECORDS = 12_000
QUICK_BYTES = {GZIP: 16 << 10, SNAPPY: 256 << 10, LZ4: 64 << 10, ZSTD: 256 << 10}
QUICK_PLAIN_BYTES = 4 << 20
QUICK_REBUILD_BYTES = 4 << 10

_COUNT = Struct(">i")
_ZSTD_BLOCK_BYTES = 128 << 10
_ZSTD_BLOCKS = 64


def takes_long(buf: Buffer, at: int, size: int, rules: BatchRules) -> bool:
    """Whether the check of the batch in buf[at : at + size] is better done in a thread."""
    if size < HEADER_SIZE or size > rules.max_message_bytes + HEADER_SIZE:
        return False  # refused at a glance
    if _COUNT.unpack_from(buf, at + COUNT_AT)[0] > QUICK_RECORDS:
        return True
    codec = buf[at + ATTRIBUTES_AT + 1] & CODEC_MASK
    if rules.compression not in (KEEP_CODEC, codec) and size > QUICK_REBUILD_BYTES:
        return True
    if not codec:
        return False
    if size > QUICK_BYTES.get(codec, 0):
        return True
    return codec == ZSTD and _zstd_may_hold_much(memoryview(buf)[at + HEADER_SIZE : at + size])


def _zstd_may_hold_much(data: memoryview) -> bool:
    """Whether a zstd frame can hold more than QUICK_PLAIN_BYTES, by the headers of its blocks.

    A block header has 3 bytes, little-endian: last block, type (0 raw, 1 one repeated byte, 2 compressed, at
    most 128 KiB plain), size. Data that is no single frame of few blocks counts as much; broken data as
    little.
    """
    import zstandard

    try:
        at = zstandard.frame_header_size(bytes(data[:18]))
    except zstandard.ZstdError:
        return False
    plain = 0
    for _ in range(_ZSTD_BLOCKS):
        head = int.from_bytes(data[at : at + 3], "little")
        length = head >> 3
        kind = head >> 1 & 3
        plain += _ZSTD_BLOCK_BYTES if kind == 2 else length
        at += 3 + (1 if kind == 1 else length)
        if plain > QUICK_PLAIN_BYTES:
            return True
        if at >= len(data):
            return False
        if head & 1:
            return len(data) - at > 4  # more than the checksum: another frame
    return True

"""Snappy as Kafka uses it: the framing of xerial's snappy-java around raw snappy blocks.

A stream: 8 magic bytes, two 32-bit version numbers, then pairs of a big-endian 32-bit length and a raw block
of at most 32 KiB plain bytes. Some clients write one bare raw block instead; some write the version numbers
in the other byte order, so they are ignored; streams that follow each other are read as one, as snappy-java
does.

No length is believed: a block must lie inside the data, and the plain size it announces must be one that its
bytes can expand to (64 bytes from 3, so a factor below 22), 32 MiB at most, before anything is allocated
(CVE-2023-34455).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct

from protocol.records.crc import Buffer

MAGIC = b"\x82SNAPPY\x00"
BLOCK_BYTES = 32 * 1024
_HEAD = MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_LENGTH = Struct(">i")
_NESTED_HEAD = _LENGTH.unpack(MAGIC[:4])[0]
_MOST_EXPANSION = 22
_MOST_PLAIN_BYTES = 32 * 1024 * 1024


class BadSnappy(ValueError):
    """Data that is neither a xerial stream nor a raw block."""


class Writer:
    """A xerial stream: each call's bytes are cut into blocks of their own."""

    def __init__(self) -> None:
        import snappy

        self._compress_block = snappy.compress
        self._head = _HEAD
        self._held = bytearray()

    def compress(self, data: Buffer, /) -> bytes:
        """Blocks for what is full; the rest is held until more comes."""
        held = self._held
        held += data
        full = len(held) - len(held) % BLOCK_BYTES
        out = self._blocks(full)
        del held[:full]
        return out

    def flush(self) -> bytes:
        return self._blocks(len(self._held))

    def _blocks(self, size: int) -> bytes:
        parts = [self._head]
        self._head = b""
        for at in range(0, size, BLOCK_BYTES):
            block = self._compress_block(bytes(self._held[at : min(at + BLOCK_BYTES, size)]))
            parts += (_LENGTH.pack(len(block)), block)
        return b"".join(parts)


def read_blocks(data: Buffer) -> Iterator[bytes]:
    """The plain bytes of each block of a xerial stream, or those of a bare raw block."""
    view = memoryview(data)
    end = len(view)
    if bytes(view[:8]) != MAGIC:
        yield from _read_block(view)
        return
    if end < 16:
        raise BadSnappy("the stream header is cut off")
    at = 16
    while at < end:
        if end - at < 4:
            raise BadSnappy("a block length is cut off")
        length = _LENGTH.unpack_from(view, at)[0]
        if length == _NESTED_HEAD and bytes(view[at : at + 8]) == MAGIC:
            at += 16
            continue
        at += 4
        if not 0 < length <= end - at:
            raise BadSnappy(f"a block of {length} bytes with {end - at} left")
        yield from _read_block(view[at : at + length])
        at += length


def _read_block(block: memoryview) -> Iterator[bytes]:
    import snappy

    announced = _plain_size(block)
    if announced > min(_MOST_EXPANSION * len(block), _MOST_PLAIN_BYTES):
        raise BadSnappy(f"{len(block)} bytes announce {announced}")
    try:
        plain: bytes = snappy.uncompress(bytes(block))
    except snappy.UncompressError as error:
        raise BadSnappy(error or "the block is corrupt") from None
    if plain:
        yield plain


def _plain_size(block: memoryview) -> int:
    """The announced plain size of a raw block: an unsigned varint of 32 bits at its front."""
    size = 0
    for place, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return size & 0xFFFFFFFF
    raise BadSnappy("the block has no size")

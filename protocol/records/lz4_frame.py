"""LZ4 frames as Kafka's clients write and read them.

A frame: magic number, descriptor (flags, block size code, optional content size), header checksum (the second
byte of the descriptor's XXH32), blocks, a zero length at the end. Java reads only frames whose blocks are
independent and whose reserved bits are clear, so only such are written and others are refused, although the C
library could read them: one linked batch in a log would stop every Java consumer.

Kafka 0.8 computed the header checksum over magic number and descriptor together. Messages of magic 0 keep
that: written wrong on purpose, and on reading the byte is ignored (KAFKA-3160, KIP-57).
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.records.crc import Buffer

MAGIC = b"\x04\x22\x4d\x18"
HIGHEST_LEVEL = 12  # of the C library; Kafka counts to 17
KAFKA_DEFAULT_LEVEL = 9  # Java maps it to its fast compressor, not to a high-compression level

_VERSION_BITS, _INDEPENDENT_BIT, _SIZE_BIT, _RESERVED_BITS = 0xC0, 0x20, 0x08, 0x03
_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393


class BadLz4(ValueError):
    """A frame that Java's reader refuses."""


class Writer:
    """One frame with independent 64 KiB blocks, without content size or content checksum."""

    def __init__(self, level: int | None = None, broken_checksum: bool = False) -> None:
        import lz4.frame

        fast = level is None or level == KAFKA_DEFAULT_LEVEL
        self._frame = lz4.frame.LZ4FrameCompressor(
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            compression_level=0 if fast or level is None else min(level, HIGHEST_LEVEL),
            content_checksum=False,
            block_checksum=False,
        )
        self._head: bytes = self._frame.begin()
        if broken_checksum:
            self._head = self._head[:-1] + bytes([_checksum_byte(self._head[:-1])])

    def compress(self, data: Buffer, /) -> bytes:
        head, self._head = self._head, b""
        return head + bytes(self._frame.compress(data))

    def flush(self) -> bytes:
        head, self._head = self._head, b""
        return head + bytes(self._frame.flush())


def read_frame(
    data: Buffer, chunk_bytes: int, feed_bytes: int, ignore_checksum: bool = False
) -> Iterator[bytes]:
    """The plain bytes of the frame, in pieces of at most `chunk_bytes`. Bytes behind it are ignored."""
    import lz4.frame

    head = _checked_head(data, ignore_checksum)
    view = memoryview(data)
    stream = lz4.frame.LZ4FrameDecompressor()
    feed: Buffer = head
    at = len(head)
    try:
        while True:
            chunk = stream.decompress(feed, chunk_bytes)
            if chunk:
                yield chunk
            if stream.eof:
                return
            feed = b""
            if stream.needs_input:
                feed = view[at : at + feed_bytes]
                at += feed_bytes
                if not feed:
                    raise BadLz4("the frame ends early")
    except RuntimeError as error:  # the wheel's only error type
        raise BadLz4(error) from None


def _checked_head(data: Buffer, ignore_checksum: bool) -> bytes:
    """The frame header, with its checksum put right if the caller does not care for it."""
    if len(data) < 7:
        raise BadLz4("the frame is too short")
    if bytes(data[:4]) != MAGIC:
        raise BadLz4("not an LZ4 frame")
    flags, block = data[4], data[5]
    if flags & _VERSION_BITS != 0x40:
        raise BadLz4(f"frame version {flags >> 6}")
    if flags & _RESERVED_BITS or block & 0x8F or block >> 4 < 4:
        raise BadLz4("reserved bits in the frame descriptor")
    if not flags & _INDEPENDENT_BIT:
        raise BadLz4("dependent block stream is unsupported")
    size = 14 if flags & _SIZE_BIT else 6
    if len(data) <= size:
        raise BadLz4("the frame is too short")
    right = bytes([_checksum_byte(bytes(data[4:size]))])
    if not ignore_checksum and bytes(data[size : size + 1]) != right:
        raise BadLz4("the checksum of the frame descriptor is wrong")
    return bytes(data[:size]) + right


def _checksum_byte(data: bytes) -> int:
    """Second byte of the XXH32 of fewer than 16 bytes."""
    mask = 0xFFFFFFFF
    hashed = (_P5 + len(data)) & mask
    words = len(data) & ~3
    for at in range(0, words, 4):
        hashed = (hashed + int.from_bytes(data[at : at + 4], "little") * _P3) & mask
        hashed = (hashed << 17 | hashed >> 15) * _P4 & mask
    for byte in data[words:]:
        hashed = (hashed + byte * _P5) & mask
        hashed = ((hashed << 11 | hashed >> 21) & mask) * _P1 & mask
    hashed = (hashed ^ hashed >> 15) * _P2 & mask
    hashed = (hashed ^ hashed >> 13) * _P3 & mask
    return (hashed ^ hashed >> 16) >> 8 & 0xFF

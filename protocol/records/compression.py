"""Codecs of record batches, both ways, with Kafka's quirks, as streams of bounded memory.

Codec numbers are those of the attributes' low three bits: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. Every
codec is imported when it is first used, so that a broker that sees none starts without them.

Reading never trusts a length that the data announces: plain bytes come in chunks of about `CHUNK_BYTES` (zstd
may give 16 MiB at once; a snappy block comes whole, but none may claim more than its compressed size can
expand to), and `decompress` stops at its limit. A window that zstd announces above `ZSTD_WINDOW_BYTES` is
only followed for that many plain bytes, since the decoder's memory grows to the window.

Quirks: snappy is written in the framing of xerial's snappy-java and read with or without it (`xerial.py`);
lz4 frames are written with independent blocks of 64 KiB, linked blocks are refused as Java refuses them, and
in messages of magic 0 the frame header's checksum is the wrong one that Kafka 0.8 wrote (`lz4_frame.py`).

Data that cannot be decoded raises InvalidRecords with UNKNOWN_SERVER_ERROR, as a running Kafka answers.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records import lz4_frame, xerial
from protocol.records.crc import Buffer
from protocol.records.varints import BadVarint, read_varint

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

CHUNK_BYTES = 256 * 1024
FEED_BYTES = 32 * 1024  # input handed over at once: what a decoder cannot take yet is copied on each call
ZSTD_FEED_BYTES = 512  # a block of 4 bytes can stand for 128 KiB: at most 16 MiB come out of this at once
ZSTD_HEADER_BYTES = 18
ZSTD_WINDOW_BYTES = 32 * 1024 * 1024
DECOMPRESS_LIMIT = 32 * 1024 * 1024
RECORD_BYTES_MAX = 32 * 1024 * 1024


class Compressor(Protocol):
    """A running compression: bytes may come out of any call; `flush` ends the stream."""

    def compress(self, data: Buffer, /) -> bytes: ...
    def flush(self) -> bytes: ...


def compress(codec: int, data: Buffer, level: int | None = None, magic: int = 2) -> bytes:
    """Compress a records section (or, for magic 0 and 1, a message set). `level` None is Kafka's default."""
    if codec == NONE:
        return bytes(data)
    stream = compressor(codec, level, magic)
    return stream.compress(data) + stream.flush()


def compressor(codec: int, level: int | None = None, magic: int = 2) -> Compressor:
    """A stream that compresses what it is fed."""
    if codec == GZIP:
        return zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    if codec == SNAPPY:
        return xerial.Writer()
    if codec == LZ4:
        return lz4_frame.Writer(level, broken_checksum=magic == 0)
    if codec == ZSTD:
        from zstandard import ZstdCompressor

        # A compression object knows no total size, so the frame carries none: as Kafka's streams write it.
        return ZstdCompressor(level=3 if level is None else level).compressobj()
    raise unknown_codec(codec)


def decompress(codec: int, data: Buffer, limit: int = DECOMPRESS_LIMIT, magic: int = 2) -> bytes:
    """All plain bytes; InvalidRecords (MESSAGE_TOO_LARGE) when there are more than `limit`."""
    out: list[bytes] = []
    size = 0
    for chunk in decompress_chunks(codec, data, magic):
        size += len(chunk)
        if size > limit:
            raise InvalidRecords(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The {CODEC_NAMES[codec]} data holds more than {limit} bytes when decompressed.",
            )
        out.append(chunk)
    return out[0] if len(out) == 1 else b"".join(out)


def decompress_chunks(codec: int, data: Buffer, magic: int = 2) -> Iterator[bytes]:
    """The plain bytes in pieces of bounded size, each made when it is asked for. No piece is empty."""
    reader = _READERS.get(codec)
    if reader is None:
        raise unknown_codec(codec)
    return reader(data, magic)


def record_blocks(
    chunks: Iterator[bytes], record_bytes_max: int = RECORD_BYTES_MAX
) -> Iterator[tuple[bytes | bytearray, list[int]]]:
    """Each chunk together with what the one before it left over.

    The consumer takes the whole records from a block and appends the position it came to; only a record that
    chunks share is put together. Raises InvalidRecords (MESSAGE_TOO_LARGE) for one of more than
    `record_bytes_max`.
    """
    held = bytearray()
    for chunk in chunks:
        ended: list[int] = []
        if held:
            held += chunk
            yield held, ended
            del held[: ended[0]]
        else:
            yield chunk, ended
            held = bytearray(memoryview(chunk)[ended[0] :])
        if len(held) > record_bytes_max or _announced_bytes(held) > record_bytes_max:
            raise InvalidRecords(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"A record takes more than {record_bytes_max} bytes when decompressed.",
            )


def _announced_bytes(held: bytearray) -> int:
    """The size of the record that begins here; 0 where there is none, or not enough of it."""
    try:
        return read_varint(held, 0, len(held))[0]
    except BadVarint:
        return 0


def unknown_codec(codec: int) -> InvalidRecords:
    """What Kafka answers for codecs 5 to 7, which do not exist."""
    return InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec}")


def undecodable(codec: int, why: object) -> InvalidRecords:
    """The error of data that its codec cannot read."""
    return InvalidRecords(
        ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to decompress record stream: {CODEC_NAMES[codec]}: {why}"
    )


def _read_plain(data: Buffer, magic: int) -> Iterator[bytes]:
    for at in range(0, len(data), CHUNK_BYTES):
        yield bytes(data[at : at + CHUNK_BYTES])


def _read_gzip(data: Buffer, magic: int) -> Iterator[bytes]:
    stream = zlib.decompressobj(31)
    at = 0
    pending: Buffer = b""
    view = memoryview(data)
    while True:
        if not pending:
            pending = view[at : at + FEED_BYTES]
            at += FEED_BYTES
            if not pending:
                raise undecodable(GZIP, "the stream ends early")
        try:
            chunk = stream.decompress(pending, CHUNK_BYTES)
        except zlib.error as error:
            raise undecodable(GZIP, error) from None
        pending = stream.unconsumed_tail
        if chunk:
            yield chunk
        if stream.eof:
            # Java reads members that follow each other as one stream and ignores other bytes behind the last.
            at = min(at, len(view)) - len(stream.unused_data)
            if bytes(view[at : at + 2]) != b"\x1f\x8b":
                return
            stream = zlib.decompressobj(31)
            pending = b""


def _read_snappy(data: Buffer, magic: int) -> Iterator[bytes]:
    try:
        yield from xerial.read_blocks(data)
    except xerial.BadSnappy as error:
        raise undecodable(SNAPPY, error) from None


def _read_lz4(data: Buffer, magic: int) -> Iterator[bytes]:
    try:
        yield from lz4_frame.read_frame(data, CHUNK_BYTES, FEED_BYTES, ignore_checksum=magic == 0)
    except lz4_frame.BadLz4 as error:
        raise undecodable(LZ4, error) from None


def _read_zstd(data: Buffer, magic: int) -> Iterator[bytes]:
    import zstandard

    view = memoryview(data)
    at = 0
    try:
        while True:
            window = zstandard.get_frame_parameters(bytes(view[at : at + ZSTD_HEADER_BYTES])).window_size
            stream = zstandard.ZstdDecompressor().decompressobj()
            size = 0
            while not stream.eof:
                feed = view[at : at + ZSTD_FEED_BYTES]
                if not feed:
                    raise undecodable(ZSTD, "the frame ends early")
                at += len(feed)
                chunk = stream.decompress(feed)
                size += len(chunk)
                if window > ZSTD_WINDOW_BYTES < size:
                    raise undecodable(ZSTD, f"a window of {window} bytes")
                if chunk:
                    yield chunk
            at -= len(stream.unused_data)
            if at == len(view):
                return
    except zstandard.ZstdError as error:
        raise undecodable(ZSTD, error) from None


_READERS: dict[int, Callable[[Buffer, int], Iterator[bytes]]] = {
    NONE: _read_plain,
    GZIP: _read_gzip,
    SNAPPY: _read_snappy,
    LZ4: _read_lz4,
    ZSTD: _read_zstd,
}

"""Snappy framing: xerial streams and bare blocks, lengths that lie."""

import struct

import pytest
import snappy

from protocol.records.xerial import MAGIC, BadSnappy, Writer, read_blocks

TEXT = b"words and words, " * 6000


def written(*pieces):
    writer = Writer()
    return b"".join(writer.compress(piece) for piece in pieces) + writer.flush()


def plain(data):
    return b"".join(read_blocks(data))


def test_written_stream_then_xerial_header_and_blocks_of_32_kib():
    data = written(TEXT)
    assert data[:16] == bytes.fromhex("82534e41505059000000000100000001")
    at, sizes = 16, []
    while at < len(data):
        length = struct.unpack_from(">i", data, at)[0]
        sizes.append(len(snappy.decompress(data[at + 4 : at + 4 + length])))
        at += 4 + length
    assert sizes[:-1] == [32 * 1024] * (len(TEXT) // (32 * 1024))
    assert plain(data) == TEXT


def test_written_in_pieces_then_same_blocks():
    assert written(*(TEXT[at : at + 777] for at in range(0, len(TEXT), 777))) == written(TEXT)


def test_bare_block_then_read():
    assert plain(snappy.compress(TEXT)) == TEXT


def test_version_numbers_in_other_byte_order_then_ignored():
    data = bytearray(written(b"abc"))
    data[8:16] = struct.pack("<ii", 1, 1)
    assert plain(data) == b"abc"


def test_streams_in_a_row_then_read_as_one():
    assert plain(written(b"first ") + written(b"second")) == b"first second"


def test_larger_blocks_of_other_writers_then_read():
    block = snappy.compress(TEXT)
    assert plain(written()[:16] + struct.pack(">i", len(block)) + block) == TEXT


@pytest.mark.parametrize(
    "data",
    [
        b"",
        MAGIC,
        MAGIC + b"\0\0\0\1\0\0\0",
        MAGIC + b"\0\0\0\1\0\0\0\1" + b"\0\0",
        MAGIC + b"\0\0\0\1\0\0\0\1" + struct.pack(">i", 0),
        MAGIC + b"\0\0\0\1\0\0\0\1" + struct.pack(">i", -5) + b"abcde",
        MAGIC + b"\0\0\0\1\0\0\0\1" + struct.pack(">i", 6) + b"abcde",
        MAGIC + b"\0\0\0\1\0\0\0\1" + struct.pack(">i", (1 << 31) - 1) + b"abcde",
        b"\x80\x80\x80\x80\x80\x01",
    ],
)
def test_lengths_that_lie_then_refused(data):
    with pytest.raises(BadSnappy):
        plain(data)


@pytest.mark.parametrize("announced", ["ffffff7f", "ffffffff0f", "80808001"])
def test_block_announcing_more_than_its_bytes_can_hold_then_refused(announced):
    with pytest.raises(BadSnappy):
        plain(bytes.fromhex(announced) + snappy.compress(b"abc")[1:])

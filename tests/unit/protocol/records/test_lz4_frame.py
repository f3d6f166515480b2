"""LZ4 frames: what Java reads, and the header checksum of magic 0."""

import lz4.frame
import pytest

from protocol.records.lz4_frame import BadLz4, Writer, read_frame

TEXT = b"words and words, " * 9000


def written(broken=False, level=None):
    writer = Writer(level, broken_checksum=broken)
    return writer.compress(TEXT[:70_000]) + writer.compress(TEXT[70_000:]) + writer.flush()


def plain(data, ignore=False):
    return b"".join(read_frame(data, 64 * 1024, 32 * 1024, ignore))


def test_written_frame_then_independent_64_kib_blocks_without_checksums_or_size():
    data = written()
    assert data[:4].hex() == "04224d18"
    assert data[4] == 0x60  # version 1, independent blocks, nothing else
    assert data[5] == 0x40  # 64 KiB
    assert data[6] == 0x82  # the known checksum of this descriptor
    assert plain(data) == TEXT
    assert lz4.frame.decompress(data) == TEXT


def test_broken_checksum_of_magic_0_then_over_magic_number_and_descriptor():
    ours = written(broken=True)
    assert ours[6] == 0x1A  # lz4-java's XXH32 of 04224d186040, second byte
    assert ours[:6] + ours[7:] == written()[:6] + written()[7:]
    assert plain(ours, ignore=True) == TEXT
    with pytest.raises(BadLz4, match="checksum"):
        plain(ours)


def test_right_checksum_where_it_is_ignored_then_read():
    assert plain(written(), ignore=True) == TEXT


def test_announced_content_size_then_read():
    assert plain(lz4.frame.compress(TEXT, block_linked=False, store_size=True)) == TEXT
    assert plain(lz4.frame.compress(TEXT, block_linked=False, content_checksum=True)) == TEXT
    assert plain(lz4.frame.compress(TEXT, block_linked=False, block_checksum=True)) == TEXT


def test_linked_blocks_then_refused_in_javas_words():
    with pytest.raises(BadLz4, match="dependent block stream is unsupported"):
        plain(lz4.frame.compress(TEXT, block_linked=True))


def changed(at, value):
    data = bytearray(written())
    data[at] = value
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        written()[:6],
        changed(0, 0),
        changed(4, 0xA0),  # version 2
        changed(4, 0x61),  # a dictionary
        changed(4, 0x62),  # reserved
        changed(5, 0x48),
        changed(5, 0xC0),
        changed(5, 0x30),  # block size code 3
        changed(6, 0),
        written()[:-4],
        written()[:-1],
        changed(4, 0x68)[:12],
    ],
)
def test_frame_that_java_refuses_then_refused(data):
    with pytest.raises(BadLz4):
        plain(data)


def test_bytes_behind_the_frame_then_ignored():
    assert plain(written() + b"junk") == TEXT

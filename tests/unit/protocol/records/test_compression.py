"""Every codec both ways, against what Kafka's clients write, damaged data, and bombs."""

import gzip
import struct
import subprocess
import sys
import tracemalloc
import zlib

import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.compression import (
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    compress,
    compressor,
    decompress,
    decompress_chunks,
    record_blocks,
)
from tests.unit.protocol.records.other_clients import codecs as kafka_python

MIB = 1 << 20
TEXT = b"The same words again and again, " * 9000
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
REAL = CODECS[1:]
WRITERS = {
    GZIP: kafka_python.gzip_encode,
    SNAPPY: kafka_python.snappy_encode,
    LZ4: kafka_python.lz4_encode,
    ZSTD: kafka_python.zstd_encode,
}
READERS = {
    GZIP: kafka_python.gzip_decode,
    SNAPPY: kafka_python.snappy_decode,
    LZ4: kafka_python.lz4_decode,
    ZSTD: kafka_python.zstd_decode,
}


def refusal(codec, data, limit=64 * MIB):
    with pytest.raises(InvalidRecords) as caught:
        decompress(codec, data, limit)
    return caught.value.error


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(data=st.one_of(st.binary(max_size=400), st.integers(0, 300_000).map(lambda size: TEXT[:size])))
def test_round_trip_then_equal(codec, data):
    assert decompress(codec, compress(codec, data)) == data
    assert decompress(codec, memoryview(compress(codec, bytearray(data)))) == data


@pytest.mark.parametrize("codec", REAL)
@pytest.mark.parametrize("data", [b"", b"a", TEXT])
def test_kafka_python_reads_ours_and_we_read_its(codec, data):
    if data or codec != SNAPPY:  # kafka-python does not know the stream without a block
        assert READERS[codec](compress(codec, data)) == data
        assert decompress(codec, WRITERS[codec](data)) == data


@pytest.mark.parametrize("codec", REAL)
def test_stream_fed_in_pieces_then_decompresses_to_the_whole(codec):
    stream = compressor(codec)
    out = b"".join(stream.compress(TEXT[at : at + 10_000]) for at in range(0, len(TEXT), 10_000))
    assert decompress(codec, out + stream.flush()) == TEXT


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(GZIP, [-1, 1, 9]), (LZ4, [1, 9, 12, 17]), (ZSTD, [-131072, -1, 1, 19])],
)
def test_every_level_of_kafka_then_readable(codec, levels):
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level)) == TEXT


def test_chunks_then_none_is_empty_or_large():
    for codec in CODECS:
        sizes = [len(chunk) for chunk in decompress_chunks(codec, compress(codec, TEXT * 4))]
        assert sum(sizes) == 4 * len(TEXT)
        assert min(sizes) > 0
        assert max(sizes) <= (16 * MIB if codec == ZSTD else 256 * 1024)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codec_that_does_not_exist_then_unknown_server_error(codec):
    assert refusal(codec, b"anything") is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("codec", REAL)
@pytest.mark.parametrize("data", [b"", b"\xff", b"not compressed at all, by no codec that there is"])
def test_data_of_no_codec_then_unknown_server_error(codec, data):
    assert refusal(codec, data) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("codec", REAL)
def test_stream_cut_anywhere_then_refused(codec):
    whole = compress(codec, TEXT[:70_000])
    block_ends = set()
    if codec == SNAPPY:  # a xerial stream may end after any block
        at = 16
        while at < len(whole):
            block_ends.add(at)
            at += 4 + struct.unpack_from(">i", whole, at)[0]
    for cut in range(len(whole) // 7, len(whole) - 1, max(1, len(whole) // 40)):
        if cut not in block_ends:
            assert refusal(codec, whole[:cut]) is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("codec", REAL)
@settings(max_examples=60, derandomize=True, deadline=None)
@given(data=st.data())
def test_damaged_data_then_invalid_records_or_bytes(codec, data):
    whole = bytearray(compress(codec, TEXT[: data.draw(st.integers(0, 3000))]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    assert refusal_or_none(codec, whole) in (
        None,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
    )


def refusal_or_none(codec, data):
    try:
        decompress(codec, data, MIB)
    except InvalidRecords as refused:
        return refused.error
    return None


def zeros(codec, mebibytes):
    stream = compressor(codec)
    block = bytes(MIB)
    return b"".join(stream.compress(block) for _ in range(mebibytes)) + stream.flush()


@pytest.mark.parametrize("codec", REAL)
def test_bomb_then_refused_at_the_limit_without_its_memory(codec):
    bomb = zeros(codec, 40)
    tracemalloc.start()
    try:
        assert refusal(codec, bomb, 4 * MIB) is ErrorCode.MESSAGE_TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 32 * MIB
    finally:
        tracemalloc.stop()


def test_zstd_bomb_of_few_bytes_then_chunks_stay_bounded():
    bomb = zstandard.ZstdCompressor(level=3).compressobj()
    data = b"".join(bomb.compress(bytes(MIB)) for _ in range(48)) + bomb.flush()
    assert len(data) < 16 * 1024
    assert max(map(len, decompress_chunks(ZSTD, data))) <= 32 * MIB


def test_zstd_window_of_128_mib_then_followed_for_32_mib_only():
    wide = zstandard.ZstdCompressionParameters.from_level(1, window_log=27)  # as level 22 has it
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    small = stream.compress(TEXT) + stream.flush()
    assert zstandard.get_frame_parameters(small).window_size == 128 * MIB
    assert decompress(ZSTD, small) == TEXT
    stream = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    large = b"".join(stream.compress(bytes(MIB)) for _ in range(36)) + stream.flush()
    assert refusal(ZSTD, large) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_zstd_frames_in_a_row_then_read_as_one_and_without_content_size():
    one = compress(ZSTD, b"first")
    assert zstandard.get_frame_parameters(one).content_size == zstandard.CONTENTSIZE_UNKNOWN
    assert decompress(ZSTD, one + compress(ZSTD, b" second")) == b"first second"
    assert refusal(ZSTD, one + b"junk") is ErrorCode.UNKNOWN_SERVER_ERROR


def test_zstd_announced_content_size_then_not_allocated():
    honest = zstandard.ZstdCompressor(write_content_size=True).compress(bytes(300))
    at = 6 if honest[4] & 0x20 == 0 else 5
    forged = (
        honest[:4]
        + bytes([honest[4] & 0x3F | 0x80])
        + honest[5:at]
        + struct.pack("<I", 1 << 30)
        + honest[at + 2 :]
    )
    assert refusal(ZSTD, forged) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_gzip_members_in_a_row_then_read_as_one_and_junk_behind_ignored():
    data = gzip.compress(b"first") + gzip.compress(b" second")
    assert decompress(GZIP, data) == b"first second"
    assert decompress(GZIP, data + b"junk") == b"first second"
    large = gzip.compress(TEXT, 0)
    assert decompress(GZIP, large + large) == TEXT + TEXT


def test_gzip_wrong_checksum_then_refused():
    data = bytearray(gzip.compress(b"some bytes"))
    data[-5] ^= 1
    assert refusal(GZIP, data) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert refusal(GZIP, zlib.compress(b"some bytes")) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_lz4_linked_blocks_then_refused():
    assert refusal(LZ4, lz4.frame.compress(TEXT, block_linked=True)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert decompress(LZ4, lz4.frame.compress(TEXT, block_linked=False)) == TEXT


@pytest.mark.parametrize("sizes", [[5, 5, 5], [1, 30, 1], [100], [3] * 50])
def test_record_blocks_then_whole_records_whatever_the_chunks(sizes):
    rows = [bytes([size]) + bytes(range(size)) for size in sizes]
    plain = b"".join(rows)
    for width in range(1, 12):
        found = []
        chunks = iter([plain[at : at + width] for at in range(0, len(plain), width)])
        for block, ended in record_blocks(chunks):
            at = 0
            while at < len(block) and at + 1 + block[at] <= len(block):
                found.append(bytes(block[at : at + 1 + block[at]]))
                at += 1 + block[at]
            ended.append(at)
        assert found == rows


def test_record_blocks_with_endless_record_then_too_large():
    def nothing_whole():
        for block, ended in record_blocks((bytes(1000) for _ in range(100)), 50_000):
            assert len(block) <= 52_000
            ended.append(0)

    with pytest.raises(InvalidRecords) as caught:
        nothing_whole()
    assert caught.value.error is ErrorCode.MESSAGE_TOO_LARGE


def test_record_blocks_with_an_announced_size_above_the_limit_then_refused_at_its_first_chunk():
    chunks = iter([b"\x80\x80\x80\x80\x01" + bytes(1000), bytes(1000)])  # 128 MiB
    blocks = record_blocks(chunks, record_bytes_max=64 * MIB)
    _, ended = next(blocks)
    ended.append(0)
    with pytest.raises(InvalidRecords) as caught:
        next(blocks)
    assert caught.value.error == ErrorCode.MESSAGE_TOO_LARGE
    assert next(chunks) == bytes(1000)


def test_check_imported_then_no_codec_is():
    program = (
        "import sys; import protocol.records.check, protocol.records.check_legacy, protocol.records.convert\n"
        "print([name for name in ('lz4', 'snappy', 'cramjam', 'zstandard') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

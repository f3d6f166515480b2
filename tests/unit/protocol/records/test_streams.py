"""Sections that come in chunks: verdicts as at once, memory bounded."""

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import Record
from protocol.records.builder import append_record
from protocol.records.compression import compress, compressor, decompress
from protocol.records.rules import ANY_RECORD_BYTES, BatchRules
from protocol.records.streams import recompress, record_bytes_max, renumbered, sound_records, walk_section
from protocol.records.walk import RecordWalk

MIB = 1 << 20


def section_of(sizes, deltas=None):
    out = bytearray()
    for index, size in enumerate(sizes):
        append_record(out, Record(0, 0, None, b"x" * size), index, deltas[index] if deltas else index)
    return bytes(out)


def walked(codec, data, count, most=ANY_RECORD_BYTES):
    walk = RecordWalk(find_null_keys=True)
    walk_section(codec, data, count, walk, BatchRules(max_message_bytes=MIB, max_record_bytes=most))
    return walk


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@settings(max_examples=25, derandomize=True, deadline=None)
@given(sizes=st.lists(st.sampled_from([0, 1, 40, 70, 5000, 300_000]), max_size=30))
def test_section_in_chunks_then_every_record_seen(codec, sizes):
    plain = section_of(sizes)
    data = compress(codec, plain)
    walk = walked(codec, data, len(sizes))
    assert (walk.index, walk.sequential, walk.null_keys) == (len(sizes), True, list(range(len(sizes))))
    assert walk.high == 2 * max(len(sizes) - 1, 0)
    assert [raw for _, _, _, raw, _ in sound_records(codec, data, len(sizes), MIB)] == [
        2 * i for i in range(len(sizes))
    ]
    assert b"".join(renumbered(codec, data, len(sizes), MIB)) == plain


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("place", [0, 1, 30, 59])
def test_a_record_above_the_limit_is_refused_wherever_it_lies(codec, place):
    sizes = [20] * 60
    sizes[place] = 993  # with the seven bytes around a value of this size: 1000
    data = compress(codec, section_of(sizes))
    assert walked(codec, data, 60, 1000).index == 60
    with pytest.raises(InvalidRecords) as caught:
        walked(codec, data, 60, 999)
    assert caught.value.error is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("difference", [-1, 1])
def test_more_or_fewer_records_than_counted_then_refused(difference):
    data = compress(1, section_of([100_000] * 9))
    with pytest.raises(InvalidRecords) as caught:
        walked(1, data, 9 + difference)
    assert caught.value.error is ErrorCode.INVALID_RECORD


def test_other_offset_deltas_then_renumbered_and_nothing_else_changed():
    sizes = [5] * 70 + [300]
    data = compress(4, section_of(sizes, deltas=[7 * i % 71 for i in range(71)]))
    assert b"".join(renumbered(4, data, 71, MIB)) == section_of(sizes)


def test_bomb_of_many_records_then_walked_in_bounded_memory():
    data = compress(1, section_of([10_000] * 1600), 1)
    tracemalloc.start()
    try:
        walk = RecordWalk()
        walk_section(1, data, 1600, walk, BatchRules(max_message_bytes=MIB))
        assert (walk.index, walk.sequential) == (1600, True)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_bomb_of_one_record_then_refused_in_bounded_memory():
    head = bytearray(section_of([0]))
    stream = compressor(1, 1)
    head[0:1] = b"\xfe\xff\xff\xff\x0f"
    data = stream.compress(head) + b"".join(stream.compress(bytes(MIB)) for _ in range(40)) + stream.flush()
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecords) as caught:
            walked(1, data, 1)
        assert caught.value.error is ErrorCode.MESSAGE_TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()


def test_record_bytes_max_then_grows_with_the_limit_on_batches():
    assert record_bytes_max(MIB) == 32 * MIB
    assert record_bytes_max(100 * MIB) == 200 * MIB


@pytest.mark.parametrize("codec", range(5))
def test_recompressed_chunks_then_same_plain_bytes_and_a_limit(codec):
    chunks = [bytes([i]) * 5000 for i in range(40)]
    out = recompress(iter(chunks), codec, None, 300_000)
    assert decompress(codec, out) == b"".join(chunks)
    with pytest.raises(InvalidRecords) as caught:
        recompress(iter(chunks), codec, None, len(out) - 1)
    assert caught.value.error is ErrorCode.MESSAGE_TOO_LARGE

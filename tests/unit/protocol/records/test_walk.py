"""The walk gives the verdict of a plain parser, whatever the bytes, in whatever slices."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import Record
from protocol.records.builder import append_record
from protocol.records.walk import RecordWalk, time_bounds, walk_records
from tests.unit.protocol.records.reference_parser import Refused, parse


def section_of(rows):
    out = bytearray()
    for index, (time_delta, key, value, headers) in enumerate(rows):
        append_record(out, Record(0, 0, key, value, tuple(headers)), time_delta, index)
    return out


def zigzag(number):
    return 2 * number if number >= 0 else -2 * number - 1


def verdict_of_reference(data, count):
    try:
        rows = parse(bytes(data), count)
    except Refused:
        return None
    high = max((zigzag(row[0]) for row in rows), default=0)
    sequential = all(row[1] == index for index, row in enumerate(rows))
    return high, sequential, [index for index, row in enumerate(rows) if row[2] is None]


def verdict_of_walk(data, count, before=b"", behind=b""):
    nulls = []
    buf = before + data + behind
    try:
        high, sequential = walk_records(buf, len(before), len(before) + len(data), count, nulls)
    except InvalidRecords as refusal:
        return None if refusal.error is ErrorCode.INVALID_RECORD else refusal
    without = walk_records(buf, len(before), len(before) + len(data), count)
    assert without == (high, sequential)
    return high, sequential, nulls


def assert_same_verdict(data, count):
    expected = verdict_of_reference(data, count)
    assert verdict_of_walk(bytearray(data), count) == expected
    assert verdict_of_walk(bytes(data), count, b"\x07", bytes(data[:40]) + b"\0" * 70) == expected
    view = memoryview(b"123" + bytes(data) + b"\0" * 9)[3 : 3 + len(data)]
    assert verdict_of_walk(bytes(view), count) == expected
    return expected


sizes = st.one_of(st.integers(0, 20), st.integers(55, 75), st.integers(120, 200), st.just(9000))
field = st.one_of(st.none(), sizes.map(lambda size: b"x" * size))
header = st.tuples(st.sampled_from(["", "h", "trace" * 15]), field)
time = st.one_of(
    st.integers(0, 3), st.integers(0, 20_000), st.integers(-70, 70), st.integers(-(1 << 63), (1 << 63) - 1)
)
row = st.tuples(time, field, field, st.lists(header, max_size=3))
repeated = st.builds(
    lambda shape, times, steady: [(times[0] if steady else at, *shape[1:]) for at in times],
    row,
    st.lists(st.integers(0, 63), min_size=2, max_size=150),
    st.booleans(),
)
rows = st.one_of(
    st.lists(row, max_size=6), repeated, st.tuples(repeated, repeated).map(lambda two: two[0] + two[1])
)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(rows)
def test_walk_of_sound_records_then_accepts_and_reports(these):
    section = section_of(these)
    expected = assert_same_verdict(section, len(these))
    assert expected is not None
    assert expected[1] is True


@settings(max_examples=120, derandomize=True, deadline=None)
@given(rows, st.data())
def test_walk_of_damaged_records_then_agrees_with_parser(these, data):
    section = section_of(these)
    for _ in range(data.draw(st.integers(1, 3))):
        if section:
            at = data.draw(st.integers(0, min(len(section), 400) - 1))
            section[at] = data.draw(
                st.one_of(st.sampled_from([0, 1, 2, 3, 127, 128, 255]), st.integers(0, 255))
            )
    count = len(these) + data.draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    assert_same_verdict(section, max(count, 0))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 12))
def test_walk_of_random_bytes_then_agrees_with_parser(data, count):
    assert_same_verdict(data, count)


small = st.one_of(st.sampled_from([0, 2, 4, 6, 8, 10, 12]), st.integers(0, 5))


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.lists(small, max_size=80).map(bytes), st.integers(0, 12))
def test_walk_of_small_numbers_then_agrees_with_parser(data, count):
    assert_same_verdict(data, count)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(repeated, st.integers(0, 149), st.integers(0, 40), st.integers(0, 255))
def test_run_with_one_byte_changed_then_agrees_with_parser(these, which, place, byte):
    section = section_of(these)
    stride = len(section) // len(these)
    at = (which % len(these)) * stride + place % max(stride, 1)
    section[min(at, len(section) - 1)] = byte
    assert_same_verdict(section, len(these))


@pytest.mark.parametrize("count", [63, 64, 65, 200, 8191, 8192, 8193, 9000])
@pytest.mark.parametrize(
    "shape", [(0, b"k", b"v" * 30), (7, None, b"v" * 90), (900, b"", None), (1 << 40, b"k", b"v")]
)
def test_long_runs_then_offset_deltas_of_each_width_are_followed(count, shape):
    time_delta, key, value = shape
    section = section_of([(time_delta, key, value, [])] * count)
    nulls = [] if key is not None else list(range(count))
    assert verdict_of_walk(section, count) == (zigzag(time_delta), True, nulls)


@pytest.mark.parametrize("first", [8192, 16000, (1 << 20) - 40, (1 << 27) - 5, (1 << 31) - 60])
def test_walk_that_goes_on_far_behind_the_first_record_then_offset_deltas_are_followed(first):
    section = bytearray()
    for index in range(first, first + 60):
        append_record(section, Record(0, 0, None, b"v"), 0, index)
    walk = RecordWalk()
    walk.index = first
    assert walk.step(section, 0, len(section), first + 60) == len(section)
    assert (walk.index, walk.sequential) == (first + 60, True)
    section[-6] ^= 2
    walk = RecordWalk()
    walk.index = first
    walk.step(section, 0, len(section), first + 60)
    assert not walk.sequential


def test_offset_deltas_out_of_sequence_inside_a_run_then_reported():
    section = section_of([(0, b"k", b"v" * 30, [])] * 60)
    stride = len(section) // 60
    section[40 * stride + 3] = section[39 * stride + 3]
    assert verdict_of_walk(section, 60) == (0, False, [])


def test_unusual_but_legal_encodings_then_accepted():
    assert verdict_of_walk(b"\x0e\x55\x80\x00\x00\x01\x01\x00", 1) == (
        0,
        True,
        [0],
    )  # a longer zero, attributes
    assert verdict_of_walk(b"\x14\x00\x00\x80\x80\x80\x80\x70\x01\x01\x00", 1) == (
        0,
        True,
        [0],
    )  # surplus bits
    assert verdict_of_walk(b"\x8c\x80\x80\x80\x00\x00\x00\x00\x01\x01\x00", 1) == (
        0,
        True,
        [0],
    )  # long length


@pytest.mark.parametrize(
    "section",
    [
        b"",
        b"\x0c\x00\x00\x00\x01\x01",
        b"\x0c\x00\x00\x00\x01\x01\x00\x00",  # one byte behind
        b"\x0c\x00\x00\x00\x03\x01\x00",  # key length -2
        b"\x0c\x00\x00\x00\x01\x03\x00",  # value length -2
        b"\x0c\x00\x00\x00\x01\x01\x01",  # header count -1
        b"\x10\x00\x00\x00\x01\x01\x02\x01\x00",  # header key null
        b"\x10\x00\x00\x00\x01\x01\x02\x00\x03",  # header value length -2
        b"\x0b\x00\x00\x00\x01\x01\x00",  # outer length negative
        b"\x18\x00\x00\x80\x80\x80\x80\x80\x00\x01\x01\x00\x00",  # varint of six bytes
        b"\xff\xff\xff\xff\x0f",
        b"\xfe\xff\xff\xff\x0f\x00",  # outer length 2^31-1
    ],
)
def test_contradictory_record_then_refused(section):
    assert verdict_of_walk(section, 1) is None
    assert verdict_of_reference(section, 1) is None


@settings(max_examples=60, derandomize=True, deadline=None)
@given(rows, st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_walk_in_slices_then_same_as_at_once(these, slices):
    section = section_of(these)
    walk = RecordWalk(find_null_keys=True)
    at = turn = 0
    while walk.index < len(these):
        at = walk.step(section, at, len(section), min(walk.index + slices[turn % len(slices)], len(these)))
        turn += 1
    assert at == len(section)
    assert (walk.high, walk.sequential, walk.null_keys) == verdict_of_reference(section, len(these))


def test_time_bounds_when_farthest_is_later_then_exact_and_otherwise_unknown():
    assert time_bounds(zigzag(0)) == (0, 0)
    assert time_bounds(zigzag(5)) == (-5, 5)
    assert time_bounds(zigzag(-6)) == (-6, None)
    assert time_bounds(zigzag(-1)) == (-1, None)


def test_run_broken_again_and_again_then_work_stays_linear():
    shapes = [(0, b"k", b"v" * (30 if index % 14 else 31), []) for index in range(4000)]
    section = section_of(shapes)
    assert verdict_of_walk(section, 4000) == (0, True, [])

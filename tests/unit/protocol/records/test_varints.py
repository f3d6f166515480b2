"""Zigzag varints: known encodings, limits, round trips."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.varints import BadVarint, append_varint, read_varint, read_varlong

KNOWN = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    ((1 << 31) - 1, "feffffff0f"),
    (-(1 << 31), "ffffffff0f"),
]


@pytest.mark.parametrize(("number", "encoded"), KNOWN)
def test_known_encoding(number, encoded):
    out = bytearray()
    append_varint(out, number)
    assert out.hex() == encoded
    assert read_varint(out, 0, len(out)) == (number, len(out))
    assert read_varlong(out, 0, len(out)) == (number, len(out))


@settings(derandomize=True, deadline=None)
@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_varlong_round_trip_then_equal(number):
    out = bytearray(b"x")
    append_varint(out, number)
    assert len(out) <= 11
    assert read_varlong(out + b"more", 1, len(out) + 4) == (number, len(out))


def test_surplus_bits_of_last_byte_then_dropped():
    assert read_varint(b"\x80\x80\x80\x80\x70", 0, 5) == (0, 5)
    assert read_varlong(b"\x80" * 9 + b"\x7e", 0, 10) == (0, 10)
    assert read_varlong(b"\xff" * 9 + b"\x01", 0, 10) == (-(1 << 63), 10)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff\x00"])
def test_varint_cut_or_too_long_then_refused(data):
    with pytest.raises(BadVarint):
        read_varint(data, 0, len(data))


@pytest.mark.parametrize("data", [b"", b"\x80" * 9, b"\x80" * 10 + b"\x00"])
def test_varlong_cut_or_too_long_then_refused(data):
    with pytest.raises(BadVarint):
        read_varlong(data, 0, len(data))


def test_end_inside_the_buffer_then_not_read_beyond():
    with pytest.raises(BadVarint):
        read_varint(b"\x80\x01", 0, 1)

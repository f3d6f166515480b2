"""Varints and tagged sections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import MalformedMessage, UnencodableMessage
from protocol.primitives import read_uvarint, skip_tags, tagged_section, uuid16, uvarint


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, b"\0"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (16383, b"\xff\x7f"),
        (2**31 - 1, b"\xff\xff\xff\xff\x07"),
    ],
)
def test_unsigned_varints(value: int, encoded: bytes) -> None:
    assert uvarint(value) == encoded
    assert read_uvarint(b"_" + encoded + b"_", 1) == (value, 1 + len(encoded))


@given(st.integers(0, 2**31 - 1))
def test_every_varint_comes_back(value: int) -> None:
    encoded = uvarint(value)
    assert read_uvarint(encoded, 0) == (value, len(encoded))


def test_a_varint_is_read_as_a_signed_number_of_32_bits() -> None:
    assert read_uvarint(b"\xff\xff\xff\xff\x0f", 0) == (-1, 5)
    assert read_uvarint(b"\x80\x80\x80\x80\x08", 0) == (-(2**31), 5)
    assert read_uvarint(b"\x81\x80\x80\x80\x70", 0) == (1, 5)


def test_a_varint_of_more_than_five_bytes_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="5 bytes"):
        read_uvarint(b"\x80" * 5 + b"\0", 0)


def test_a_varint_that_ends_early_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        read_uvarint(b"\x80", 0)


def test_tagged_sections_are_skipped_by_their_sizes() -> None:
    section = tagged_section([(0, b"abc"), (200, b"")])
    assert section == b"\x02\0\x03abc\xc8\x01\0"
    assert skip_tags(section, 1, len(section), 2) == len(section)


@pytest.mark.parametrize("data", [b"\0\x04abc", b"\0\xff\xff\xff\xff\x0f"])
def test_a_tagged_field_that_exceeds_the_rest_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="tagged field"):
        skip_tags(data, 0, len(data), 1)


def test_a_uuid_must_have_16_bytes() -> None:
    assert uuid16(bytes(16), "Toy.Id") == bytes(16)
    with pytest.raises(UnencodableMessage, match=r"Toy.Id: .* not 3"):
        uuid16(b"abc", "Toy.Id")

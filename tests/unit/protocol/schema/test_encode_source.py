"""Encoding, byte by byte, of small messages written here, and what is refused."""

from __future__ import annotations

import pytest

from protocol.errors import UnencodableMessage
from tests.support.toy_messages import toy

ALL = toy("""
    data Toy versions 0-1 flexible 1+
      Flag: bool
      Byte: int8
      Short: int16
      Port: uint16
      Int: int32
      Long: int64
      Ratio: float64
      Id: uuid
      Name: string
      Note: string? = null
      Raw: bytes? = null
      Log: records?
      Sizes: [int32]? = null
      Ids: [uuid]
      Names: [string]
""")
ID = bytes(range(16))
FIXED = (
    b"\x01\x80\xff\xfe\xff\xff\0\0\0\x01\xff\xff\xff\xff\xff\xff\xff\xff\x3f\xf8\0\0\0\0\0\0" + ID
)  # up to Id
MESSAGE = ALL(
    flag=True,
    byte=-128,
    short=-2,
    port=65535,
    int=1,
    long=-1,
    ratio=1.5,
    id=ID,
    name="é",
    log=memoryview(b"xx"),
    sizes=[1],
    ids=[ID],
    names=["a", ""],
)


def test_the_old_form() -> None:
    assert MESSAGE.encode(0) == (
        FIXED + b"\0\x02\xc3\xa9\xff\xff\xff\xff\xff\xff\0\0\0\x02xx"
        b"\0\0\0\x01\0\0\0\x01\0\0\0\x01" + ID + b"\0\0\0\x02\0\x01a\0\0"
    )


def test_the_flexible_form() -> None:
    assert MESSAGE.encode(1) == (
        FIXED + b"\x03\xc3\xa9\0\0\x03xx\x02\0\0\0\x01\x02" + ID + b"\x03\x02a\x01\0"
    )


def test_nulls_and_empty_arrays() -> None:
    message = ALL()
    assert message.encode(0).endswith(b"\0\0\xff\xff" + b"\xff\xff\xff\xff" * 3 + b"\0\0\0\0" * 2)
    assert message.encode(1).endswith(b"\x01\0\0\0\0\x01\x01\0")


@pytest.mark.parametrize("size", [0, 8, 9, 126, 127, 300])
def test_arrays_of_every_size_come_back(size: int) -> None:
    message = ALL(sizes=list(range(size)), names=["n"] * size)
    for version in (0, 1):
        assert ALL.decode(version, message.encode(version))[0] == message


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"byte": 128}, "Toy v"),
        ({"port": -1}, "Toy v"),
        ({"name": None}, "Toy v"),
        ({"name": "x" * 32768}, "Toy"),
        ({"note": "x" * 32768}, "Toy"),
        ({"name": "\ud800"}, "Toy v"),
        ({"name": b"bytes"}, "Toy v"),
        ({"ids": None}, "Toy v"),
        ({"names": [None]}, "Toy v"),
        ({"id": b"short"}, "uuid has 16 bytes"),
        ({"sizes": [2**31]}, "Toy v"),
    ],
)
def test_values_that_do_not_fit_are_refused(values: dict[str, object], complaint: str) -> None:
    for version in (0, 1):
        with pytest.raises(UnencodableMessage, match=complaint):
            ALL(**values).encode(version)


VERSIONED = toy("""
    data Toy versions 0-3 flexible 2+
      Old: int32 0-1 = -1
      New: int32 1+ = -1 ~
      Names: [string] 1+
      Note: string? 3+ tag 0 = null
      Place: Place 2+ tag 1
        Port: int32 = -1
      Hint: int8 3+ tag 2 ~
""")


@pytest.mark.parametrize(
    ("version", "values", "field"),
    [
        (2, {"old": 5}, "Toy.Old"),
        (0, {"names": ["a"]}, "Toy.Names"),
        (2, {"note": ""}, "Toy.Note"),
        (1, {"place": VERSIONED.Place(port=1)}, "Toy.Place"),
    ],
)
def test_a_value_that_a_version_lacks_is_refused(version: int, values: dict[str, object], field: str) -> None:
    with pytest.raises(UnencodableMessage, match=rf"{field} .*version {version}"):
        VERSIONED(**values).encode(version)


def test_an_ignorable_value_is_dropped_at_a_version_that_lacks_it() -> None:
    message = VERSIONED(new=5, hint=3)
    assert message.encode(0) == b"\xff\xff\xff\xff"
    assert message.encode(2) == b"\0\0\0\x05\x01\0"


def test_tagged_fields_are_written_in_order_unless_they_have_their_default() -> None:
    assert VERSIONED().encode(3) == b"\xff\xff\xff\xff\x01\0"
    message = VERSIONED(hint=1, place=VERSIONED.Place(port=2), note="a")
    assert message.encode(3) == (b"\xff\xff\xff\xff\x01\x03\0\x02\x02a\x01\x05\0\0\0\x02\0\x02\x01\x01")


def test_structs_that_may_be_null() -> None:
    made = toy("""
        data Toy versions 0 flexible 0+
          Cursor: Cursor? = null
            At: int8
          Other: Cursor? tag 0 = null
    """)
    assert made().encode(0) == b"\xff\0"
    assert made(cursor=made.Cursor(at=5)).encode(0) == b"\x01\x05\0\0"
    assert made(other=made.Cursor(at=5)).encode(0) == b"\xff\x01\0\x03\x01\x05\0"


@pytest.mark.parametrize("flexible", ["", " flexible 0+"])
def test_a_message_beside_an_error_is_cut_to_what_a_string_may_have(flexible: str) -> None:
    """It quotes what a client sent. Other strings are not cut: somebody would take them for the whole."""
    text = toy(f"data Toy versions 0{flexible}\n  ErrorMessage: string?\n  Name: string")
    told, _ = text.decode(0, text(error_message="é" * 16_384, name="n").encode(0))
    assert (told.error_message, told.name) == ("é" * 16_383, "n")
    assert text.decode(0, text(error_message=None, name="").encode(0))[0].error_message is None
    with pytest.raises(UnencodableMessage):
        text(error_message="", name="n" * 32_768).encode(0)

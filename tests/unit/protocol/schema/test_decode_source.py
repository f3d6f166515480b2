"""Decoding, byte by byte, of small messages written here."""

from __future__ import annotations

import pytest

from protocol.errors import MalformedMessage
from tests.support.toy_messages import toy

OLD_AND_FLEXIBLE = toy("""
    data Toy versions 0-2 flexible 1+
      Id: int32
      Name: string
      Note: string? = null
      Raw: bytes
      Log: records?
      Sizes: [int16]
      Names: [string]? 0+
      Late: bool 2+ = true
""")

OLD_BYTES = (
    b"\0\0\0\x05"  # Id
    b"\0\x02hi"
    b"\xff\xff"  # Note: null
    b"\0\0\0\x01r"
    b"\0\0\0\x03log"
    b"\0\0\0\x02\0\x01\xff\xff"
    b"\0\0\0\x01\0\x01n"
)
FLEXIBLE_BYTES = b"\0\0\0\x05\x03hi\x00\x02r\x04log\x03\0\x01\xff\xff\x02\x02n\x00"


def test_the_old_form() -> None:
    message, stop = OLD_AND_FLEXIBLE.decode(0, OLD_BYTES)
    assert stop == len(OLD_BYTES)
    assert (message.id, message.name, message.note, message.raw) == (5, "hi", None, b"r")
    assert isinstance(message.log, memoryview)
    assert message.log == b"log"
    assert (message.sizes, message.names, message.late) == ([1, -1], ["n"], True)


def test_the_flexible_form() -> None:
    message, stop = OLD_AND_FLEXIBLE.decode(1, FLEXIBLE_BYTES)
    assert stop == len(FLEXIBLE_BYTES)
    assert message == OLD_AND_FLEXIBLE.decode(0, OLD_BYTES)[0]


def test_any_nonzero_byte_is_true() -> None:
    for byte, value in ((b"\0", False), (b"\x01", True), (b"\x80", True)):
        message, _ = OLD_AND_FLEXIBLE.decode(2, FLEXIBLE_BYTES[:-1] + byte + b"\0")
        assert message.late is value


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x80\0\0\0"])
def test_any_negative_array_length_means_null(length: bytes) -> None:
    message, _ = OLD_AND_FLEXIBLE.decode(0, OLD_BYTES[:-7] + length)
    assert message.names is None


def test_a_compact_length_that_turns_negative_means_null() -> None:
    array = toy("data Toy versions 0 flexible 0+\n  A: [int8]?")
    for length in (b"\x00", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08"):
        assert array.decode(0, length + b"\0")[0].a is None


def test_strings_that_are_no_utf8_are_read_with_replacement_characters() -> None:
    text = toy("data Toy versions 0\n  A: string")
    assert text.decode(0, b"\0\x02a\xff")[0].a == "a\ufffd"


@pytest.mark.parametrize("flexible", ["", " flexible 0+"])
def test_a_string_that_would_be_too_long_with_its_replacement_characters_is_refused(flexible: str) -> None:
    """What was read can be written: into records, and into the answers that repeat it."""
    text = toy(f"data Toy versions 0{flexible}\n  A: string\n  B: [string]")
    for invalid in (0, 10_922, 10_923):
        message = text(a="", b=["x" * 10_923])
        data = message.encode(0).replace(b"x" * invalid, b"\xff" * invalid) if invalid else message.encode(0)
        if invalid < 10_923:
            read, _ = text.decode(0, data)
            assert len(read.b[0].encode()) <= 32767
        else:
            with pytest.raises(MalformedMessage, match="32767"):
                text.decode(0, data)


def test_records_are_views_of_the_buffer_and_nothing_else_is() -> None:
    buffer = bytearray(b"__" + FLEXIBLE_BYTES + b"__")
    message, stop = OLD_AND_FLEXIBLE.decode(1, buffer, 2, len(buffer) - 2)
    assert stop == len(buffer) - 2
    buffer[buffer.index(b"log")] = ord("L")
    assert message.log == b"Log"
    assert type(message.raw) is bytes


TAGGED = toy("""
    data Toy versions 0-3 flexible 0+
      Plain: int8
      Name: string? tag 0 = null
      Place: Place tag 1
        Port: int32 = -1
      Late: int16 2+ tag 2 = 7
      Items: [Item] tag 5
        Id: int8
""")


def test_tagged_fields_are_read_in_any_order_and_the_last_one_counts() -> None:
    data = b"\x01\x04\x05\x05\x03\x09\0\x08\0\0\x02\x02a\0\x02\x02b\x01\x05\0\0\0\x2a\0"
    message, stop = TAGGED.decode(0, data)
    assert stop == len(data)
    assert (message.name, message.place.port, message.late) == ("b", 42, 7)
    assert [item.id for item in message.items] == [9, 8]


def test_absent_tagged_fields_have_their_defaults() -> None:
    message, _ = TAGGED.decode(3, b"\x01\0")
    assert message == TAGGED(plain=1)
    assert (message.name, message.place.port, message.late, message.items) == (None, -1, 7, [])


def test_unknown_tags_are_skipped() -> None:
    message, stop = TAGGED.decode(0, b"\x01\x02\x63\x03abc\xff\x01\x00")
    assert (message.plain, stop) == (1, 10)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (1, b"\x01\x01\x02\x02\0\x05"),  # a tag of a later version
        (2, b"\x01\x01\x02\x03\0\x05\0"),  # announced longer than its value
        (2, b"\x01\x01\x02\x01\0\x05"),  # announced shorter
        (2, b"\x01\x01\x02\x7f\0\x05"),  # longer than the message
        (2, b"\x01\x01\x63\xff\xff\xff\xff\x0f"),  # an unknown tag of -1 bytes
        (2, b"\x01\x05\x63\x00"),  # fewer tags than announced
    ],
)
def test_tagged_fields_that_do_not_fit_are_refused(version: int, data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        TAGGED.decode(version, data)


NULLABLE_STRUCT = toy("""
    data Toy versions 0 flexible 0+
      Cursor: Cursor? = null
        At: int8
      Other: Cursor? tag 0 = null
""")


def test_a_struct_that_may_be_null_has_a_byte_before_it() -> None:
    assert NULLABLE_STRUCT.decode(0, b"\xff\0")[0].cursor is None
    assert NULLABLE_STRUCT.decode(0, b"\x01\x05\0\0")[0].cursor.at == 5
    assert NULLABLE_STRUCT.decode(0, b"\xff\x01\0\x01\0")[0].other is None
    assert NULLABLE_STRUCT.decode(0, b"\xff\x01\0\x03\x01\x05\0")[0].other.at == 5


@pytest.mark.parametrize(
    ("definition", "data"),
    [
        ("A: string", b"\xff\xff"),
        ("A: bytes", b"\xff\xff\xff\xff"),
        ("A: [int8]", b"\xff\xff\xff\xff"),
        ("A: [string]", b"\0\0\0\x01\xff\xff"),
        ("A: string", b"\0\x02a"),
        ("A: bytes", b"\x7f\xff\xff\xffa"),
        ("A: [int32]", b"\0\0\0\x02\0\0\0\x01\0\0\0"),
        ("A: [uuid]", b"\0\0\0\x01" + bytes(15)),
        ("A: [int8]", b"\x7f\xff\xff\xff\0"),
        ("A: int64", b"\0\0\0"),
        ("A: string", b""),
    ],
)
def test_nulls_and_lengths_that_do_not_fit_are_refused(definition: str, data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        toy(f"data Toy versions 0\n  {definition}").decode(0, data)


@pytest.mark.parametrize(
    ("definition", "data"),
    [
        ("A: string", b"\0\0"),
        ("A: [string]", b"\x02\0\0"),
        ("A: string", b"\x80\x80\x80\x80\x80\x01"),  # a varint of six bytes
        ("A: string", b"\x81\x80\x02" + bytes(32769)),  # 32768 bytes
    ],
)
def test_the_same_in_the_flexible_form(definition: str, data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        toy(f"data Toy versions 0 flexible 0+\n  {definition}").decode(0, data)


def test_the_longest_string_is_read() -> None:
    text = toy("data Toy versions 0 flexible 0+\n  A: string")
    message, _ = text.decode(0, b"\x80\x80\x02" + b"x" * 32767 + b"\0")
    assert len(message.a) == 32767


def test_the_failure_names_the_field() -> None:
    nested = toy("data Toy versions 0\n  Topics: [Topic]\n    Name: string")
    with pytest.raises(MalformedMessage, match=r"Toy\.Topics\.Name"):
        nested.decode(0, b"\0\0\0\x01\xff\xff")

"""Both checksum functions against their published check values and against each other."""

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.crc import crc32, crc32c, crc32c_of_crcmod

CHECK = b"123456789"
second_opinion = crc32c_of_crcmod()


def test_crc32c_of_check_string_then_published_value():
    assert crc32c(CHECK) == 0xE3069283
    assert second_opinion(CHECK) == 0xE3069283


def test_crc32_of_check_string_then_published_value():
    assert crc32(CHECK) == 0xCBF43926


def test_crc32c_of_any_buffer_then_same():
    for make in (bytes, bytearray, memoryview):
        assert crc32c(make(CHECK)) == second_opinion(make(CHECK)) == 0xE3069283
    assert crc32c(memoryview(bytearray(b"xx" + CHECK))[2:]) == 0xE3069283


@settings(max_examples=50, derandomize=True, deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_crc32c_in_pieces_then_same_as_at_once_and_as_crcmod(first, second):
    whole = crc32c(first + second)
    assert crc32c(second, crc32c(first)) == whole
    assert second_opinion(second, second_opinion(first)) == whole

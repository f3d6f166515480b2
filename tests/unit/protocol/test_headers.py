"""Headers: their versions, their exceptions, and bytes that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    request_header_version,
    response_header_version,
)


@pytest.mark.parametrize(
    ("api_key", "api_version", "request_version", "response_version"),
    [
        (3, 8, 1, 0),
        (3, 9, 2, 1),
        (3, 13, 2, 1),
        (7, 0, 0, 0),  # ControlledShutdown v0
        (7, 1, 1, 0),
        (7, 3, 2, 1),
        (17, 0, 1, 0),  # SaslHandshake is never flexible
        (17, 1, 1, 0),
        (47, 0, 1, 0),  # OffsetDelete neither
        (18, 2, 1, 0),
        (18, 3, 2, 0),  # ApiVersions: the response never
        (18, 5, 2, 0),
        (18, 99, 2, 0),  # and too new a version is read with header v2
        (68, 0, 2, 1),
    ],
)
def test_header_versions(api_key: int, api_version: int, request_version: int, response_version: int) -> None:
    assert request_header_version(api_key, api_version) == request_version
    assert response_header_version(api_key, api_version) == response_version


@pytest.mark.parametrize(
    ("header", "encoded"),
    [
        (RequestHeader(3, 8, 7, "me"), b"\0\x03\0\x08\0\0\0\x07\0\x02me"),
        (RequestHeader(3, 8, -1, None), b"\0\x03\0\x08\xff\xff\xff\xff\xff\xff"),
        (RequestHeader(3, 9, 7, "me"), b"\0\x03\0\x09\0\0\0\x07\0\x02me\0"),
        (RequestHeader(3, 9, 7, None), b"\0\x03\0\x09\0\0\0\x07\xff\xff\0"),
        (RequestHeader(7, 0, 7, None), b"\0\x07\0\0\0\0\0\x07"),
    ],
)
def test_request_headers(header: RequestHeader, encoded: bytes) -> None:
    assert encode_request_header(header) == encoded
    assert decode_request_header(encoded) == (header, len(encoded))
    assert decode_request_header(b"__" + encoded + b"body", 2) == (header, 2 + len(encoded))
    assert decode_request_header(memoryview(b"__" + encoded), 2, 2 + len(encoded))[0] == header


def test_a_client_id_of_length_minus_two_is_null_too() -> None:
    assert decode_request_header(b"\0\x03\0\x08\0\0\0\x07\xff\xfe")[0].client_id is None


def test_tagged_fields_of_a_header_are_skipped() -> None:
    header, body = decode_request_header(b"\0\x03\0\x09\0\0\0\x07\0\0" + b"\x01\x05\x02ab" + b"body")
    assert (header.client_id, body) == ("", 15)
    assert decode_response_header(3, 9, b"\0\0\0\x07\x01\x05\x02ab") == (7, 9)


def test_response_headers() -> None:
    assert encode_response_header(3, 8, 7) == b"\0\0\0\x07"
    assert encode_response_header(3, 9, 7) == b"\0\0\0\x07\0"
    assert encode_response_header(18, 3, 7) == b"\0\0\0\x07"
    assert decode_response_header(3, 8, b"\0\0\0\x07") == (7, 4)
    assert decode_response_header(3, 9, b"_\0\0\0\x07\0", 1) == (7, 6)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\x03\0\x08\0\0\0",
        b"\0\x03\0\x08\0\0\0\x07",
        b"\0\x03\0\x08\0\0\0\x07\0",
        b"\0\x03\0\x08\0\0\0\x07\0\x05me",
        b"\0\x03\0\x09\0\0\0\x07\0\x02me",  # no tagged section
        b"\0\x03\0\x09\0\0\0\x07\0\0\x01\x05\x09ab",
        b"\0\x03\0\x09\0\0\0\x07\0\0\x80\x80\x80\x80\x01",  # 2**28 tagged fields
        b"\0\x03\0\x09\0\0\0\x07\0\0\x80\x80\x80\x80\x80\x01",
    ],
)
def test_bytes_that_are_no_header_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_request_header(data)
    with pytest.raises(MalformedMessage):
        decode_request_header(data + bytes(40), 0, len(data))


def test_an_unknown_api_has_no_header() -> None:
    with pytest.raises(UnsupportedVersion):
        decode_request_header(b"\x7f\xff\0\0\0\0\0\0\0\0")


@given(st.binary(max_size=30), st.sampled_from([b"", b"\0\x03\0\x09", b"\0\x12\0\x03", b"\0\x07\0\0"]))
def test_any_bytes_are_a_header_or_a_typed_failure(data: bytes, start: bytes) -> None:
    try:
        header, body = decode_request_header(start + data)
    except (MalformedMessage, UnsupportedVersion):
        return
    assert body <= len(start + data)
    assert header.client_id is None or len(header.client_id) <= 30


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\x07", b"\0\0\0\x07\x01\0\x05", b"\0\0\0\x07\x80"])
def test_bytes_that_are_no_response_header_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_response_header(3, 9, data)


def test_a_client_id_too_long_for_its_length_is_refused() -> None:
    with pytest.raises(UnencodableMessage):
        encode_request_header(RequestHeader(3, 9, 7, "x" * 32768))


def test_a_client_id_that_would_be_too_long_with_its_replacement_characters_is_refused() -> None:
    data = encode_request_header(RequestHeader(3, 8, 7, "x" * 32767))
    assert decode_request_header(data)[0].client_id == "x" * 32767
    with pytest.raises(MalformedMessage, match="32767"):
        decode_request_header(data.replace(b"x", b"\xff"))

"""Request and response headers, with their exceptions.

- Request header v1: api key, api version, correlation id, client id. v2 adds tagged fields and goes with
  flexible request versions. v0 has no client id; only ControlledShutdown v0 uses it. The client id always
  has the old form (int16 length), in v2 too; any negative length means null.
- Response header v1 adds tagged fields and goes with flexible versions, except that ApiVersions always has
  v0, since its client cannot know yet what the broker understands.
- An ApiVersions request above the newest version is read with header v2, so that it can be answered.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import Final

from protocol import messages
from protocol.api_keys import ApiKey
from protocol.errors import MalformedMessage, UnencodableMessage
from protocol.primitives import MAX_STRING_BYTES, Buffer, long_string, many_tags, read_uvarint, skip_tags
from protocol.schema.base import MAX_TAGGED_FIELDS

_FIXED: Final = struct.Struct(">hhi")
_FIXED_AND_LENGTH: Final = struct.Struct(">hhih")
_CORRELATION_ID: Final = struct.Struct(">i")


@dataclass(slots=True)
class RequestHeader:
    """What stands before the body of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


@cache
def flexible_from(api_key: int) -> int:
    """The first version of an API with tagged fields in its headers.

    Raises UnsupportedVersion for unknown keys.
    """
    return messages.request_class(api_key).FLEXIBLE_FROM


def request_header_version(api_key: int, api_version: int) -> int:
    """0, 1 or 2. Raises UnsupportedVersion for an unknown API."""
    if api_key == ApiKey.CONTROLLED_SHUTDOWN and api_version == 0:
        return 0
    return 2 if api_version >= flexible_from(api_key) else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """0 or 1. Raises UnsupportedVersion for an unknown API."""
    return 1 if api_version >= flexible_from(api_key) and api_key != ApiKey.API_VERSIONS else 0


def decode_request_header(buf: Buffer, at: int = 0, end: int | None = None) -> tuple[RequestHeader, int]:
    """Read the header at `at`; return it and where the body starts.

    The version itself is not checked. Raises UnsupportedVersion for an unknown API key, MalformedMessage
    for bytes that are no header.
    """
    stop = len(buf) if end is None else end
    try:
        if stop - at < _FIXED.size:
            raise MalformedMessage(f"a request of {stop - at} bytes holds no header")
        api_key, api_version, correlation_id = _FIXED.unpack_from(buf, at)
        version = request_header_version(api_key, api_version)
        at += _FIXED.size
        client_id = None
        if version > 0:
            client_id, at = _read_client_id(buf, at, stop)
        if version > 1:
            at = _skip_tagged_fields("request header", buf, at, stop)
    except (IndexError, struct.error) as error:
        raise MalformedMessage("the request header ends early") from error
    return RequestHeader(api_key, api_version, correlation_id, client_id), at


def _read_client_id(buf: Buffer, at: int, end: int) -> tuple[str | None, int]:
    if at + 2 > end:
        raise MalformedMessage("the request header ends before the client id")
    length = int.from_bytes(buf[at : at + 2], "big", signed=True)
    at += 2
    if length < 0:
        return None, at
    if length > end - at:
        raise MalformedMessage(f"a client id of {length} bytes where {end - at} are left")
    client_id = str(buf[at : at + length], "utf-8", "replace")
    if length > MAX_STRING_BYTES // 3 and len(client_id.encode()) > MAX_STRING_BYTES:
        raise long_string("the client id", len(client_id.encode()))  # with replacement characters
    return client_id, at + length


def _skip_tagged_fields(where: str, buf: Buffer, at: int, end: int) -> int:
    count, at = read_uvarint(buf, at)
    if count > MAX_TAGGED_FIELDS:
        raise many_tags(where, count)
    at = skip_tags(buf, at, end, count)
    if at > end:
        raise MalformedMessage(f"the {where} ends early")
    return at


def encode_request_header(header: RequestHeader) -> bytes:
    """The bytes of a request header, in the version that its API and version call for."""
    version = request_header_version(header.api_key, header.api_version)
    if version == 0:
        return _FIXED.pack(header.api_key, header.api_version, header.correlation_id)
    client_id = b"" if header.client_id is None else header.client_id.encode()
    if len(client_id) > MAX_STRING_BYTES:
        raise UnencodableMessage(f"a client id of {len(client_id)} bytes")
    length = -1 if header.client_id is None else len(client_id)
    fixed = _FIXED_AND_LENGTH.pack(header.api_key, header.api_version, header.correlation_id, length)
    return fixed + client_id + (b"\0" if version == 2 else b"")


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The bytes before the body of a response."""
    fixed = _CORRELATION_ID.pack(correlation_id)
    return fixed + b"\0" if response_header_version(api_key, api_version) else fixed


def decode_response_header(
    api_key: int, api_version: int, buf: Buffer, at: int = 0, end: int | None = None
) -> tuple[int, int]:
    """Read a response header at `at`; return (correlation id, where the body starts)."""
    stop = len(buf) if end is None else end
    if stop - at < _CORRELATION_ID.size:
        raise MalformedMessage(f"a response of {stop - at} bytes holds no header")
    (correlation_id,) = _CORRELATION_ID.unpack_from(buf, at)
    at += _CORRELATION_ID.size
    if response_header_version(api_key, api_version):
        try:
            at = _skip_tagged_fields("response header", buf, at, stop)
        except IndexError as error:
            raise MalformedMessage("the response header ends early") from error
    return correlation_id, at

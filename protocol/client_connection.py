"""The client's side of a connection, without I/O: requests become bytes, bytes become responses.

The owner moves the bytes. First it sends `negotiate()` and feeds what arrives until `negotiated` holds;
when the broker refuses our ApiVersions version it calls `negotiate()` again, which then asks at a version
the broker named. After that `send` picks for each request the newest version that both sides know.

Invariant: responses come in the order of the requests; anything else is a ProtocolViolation, after which the
connection must be closed. Produce with acks=0 has no response.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, MalformedMessage, ProtocolViolation, UnsupportedVersion
from protocol.frames import FrameSplitter, frame
from protocol.headers import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from protocol.primitives import Buffer

MAX_RESPONSE_BYTES: Final = 0x7FFFFFFF
_CORRELATION_IDS: Final = 0x80000000


@dataclass(slots=True)
class _Sent:
    api_key: int
    version: int
    correlation_id: int


class ClientConnection:
    """Correlation ids, versions and the order of responses of one connection.

    `versions` holds the broker's (oldest, newest) version by API key, once negotiated;
    `last_correlation_id` is that of the request sent last, -1 before the first.
    """

    def __init__(
        self,
        client_id: str | None = "ottla",
        software_name: str = "ottla",
        software_version: str = "0",
        max_response_bytes: int = MAX_RESPONSE_BYTES,
    ) -> None:
        self.client_id = client_id
        self.software_name = software_name
        self.software_version = software_version
        self.versions: dict[int, tuple[int, int]] = {}
        self._frames = FrameSplitter(max_response_bytes)
        self._in_flight: deque[_Sent] = deque()
        self.last_correlation_id = -1
        self._api_versions_version = m.ApiVersionsRequest.MAX_VERSION

    @property
    def negotiated(self) -> bool:
        """Whether the broker's versions are known."""
        return bool(self.versions)

    @property
    def in_flight(self) -> int:
        """How many responses are still to come."""
        return len(self._in_flight)

    def negotiate(self) -> bytes:
        """The bytes of an ApiVersions request at the newest version that may succeed."""
        request = m.ApiVersionsRequest(
            client_software_name=self.software_name, client_software_version=self.software_version
        )
        return self.send(request, self._api_versions_version)

    def version_for(self, api_key: int) -> int:
        """The newest version of an API that both sides know. Raises UnsupportedVersion."""
        ours = m.request_class(api_key)
        if api_key not in self.versions:
            raise UnsupportedVersion(f"the broker does not offer {ApiKey(api_key).title}")
        oldest, newest = self.versions[api_key]
        version = min(newest, ours.MAX_VERSION)
        if version < max(oldest, ours.MIN_VERSION):
            raise UnsupportedVersion(
                f"{ApiKey(api_key).title}: the broker has versions {oldest}-{newest}, "
                f"we have {ours.MIN_VERSION}-{ours.MAX_VERSION}"
            )
        return version

    def send(self, request: m.Message, version: int | None = None) -> bytes:
        """The frame of a request, at `version` or at the newest that both sides know.

        Raises UnsupportedVersion or UnencodableMessage, and then nothing counts as sent.
        """
        api_key = request.API_KEY
        chosen = self.version_for(api_key) if version is None else version
        body = request.encode(chosen)
        correlation_id = (self.last_correlation_id + 1) % _CORRELATION_IDS
        header = encode_request_header(RequestHeader(api_key, chosen, correlation_id, self.client_id))
        self.last_correlation_id = correlation_id
        if not (isinstance(request, m.ProduceRequest) and request.acks == 0):
            self._in_flight.append(_Sent(api_key, chosen, correlation_id))
        return frame(header, body)

    def receive(self, received: bytes | bytearray | memoryview) -> list[tuple[int, m.Message]]:
        """Take what arrived; return (correlation id, response) for each response that is complete now.

        Raises ProtocolViolation for bytes that are no response to the oldest open request.
        """
        return [self._response(payload) for payload in self._frames.feed(received)]

    def response(self, payload: Buffer) -> m.Message:
        """The response in the payload of a frame, for an owner that finds the frames itself. Its records are
        views of the payload. Raises as `receive`.
        """
        return self._response(payload)[1]

    def _response(self, payload: Buffer) -> tuple[int, m.Message]:
        if not self._in_flight:
            raise ProtocolViolation(f"a response of {len(payload)} bytes to no request")
        sent = self._in_flight.popleft()
        correlation_id, at = decode_response_header(sent.api_key, sent.version, payload)
        if correlation_id != sent.correlation_id:
            raise ProtocolViolation(
                f"a response with correlation id {correlation_id}, next is {sent.correlation_id}"
            )
        if sent.api_key == ApiKey.API_VERSIONS:
            return correlation_id, self._api_versions_response(sent.version, payload, at)
        message, _ = m.response_class(sent.api_key).decode(sent.version, payload, at)
        return correlation_id, message

    def _api_versions_response(self, version: int, payload: Buffer, at: int) -> m.ApiVersionsResponse:
        """Learn the broker's versions. A refusal of ours comes in the layout of version 0 (KIP-511)."""
        if len(payload) < at + 2:
            raise MalformedMessage("an ApiVersions response without an error code")
        refused = int.from_bytes(payload[at : at + 2], "big") == ErrorCode.UNSUPPORTED_VERSION
        response, _ = m.ApiVersionsResponse.decode(0 if refused else version, payload, at)
        ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        if refused:
            newest = ranges.get(ApiKey.API_VERSIONS, (0, 0))[1]
            self._api_versions_version = max(0, min(newest, version - 1))
        elif response.error_code == ErrorCode.NONE:
            self.versions = ranges
        return response

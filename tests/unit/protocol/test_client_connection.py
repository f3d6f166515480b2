"""The client's side of a connection, against answers written here."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.client_connection import ClientConnection
from protocol.errors import MalformedMessage, ProtocolViolation, UnencodableMessage, UnsupportedVersion
from protocol.frames import FrameSplitter, frame
from protocol.headers import decode_request_header, encode_response_header


def answer(request: bytes, response: m.Message, version: int | None = None) -> bytes:
    """The frame that answers a request's frame, at the request's version or another."""
    (payload,) = FrameSplitter().feed(request)
    header, _ = decode_request_header(payload)
    chosen = header.api_version if version is None else version
    head = encode_response_header(header.api_key, chosen, header.correlation_id)
    return frame(head, response.encode(chosen))


def api_versions(**ranges: tuple[int, int]) -> m.ApiVersionsResponse:
    keys = {"api_versions": 18, "metadata": 3, "produce": 0, "heartbeat": 12}
    made = m.ApiVersionsResponse.ApiVersion
    return m.ApiVersionsResponse(
        api_keys=[
            made(api_key=keys[name], min_version=low, max_version=high)
            for name, (low, high) in ranges.items()
        ]
    )


@pytest.fixture
def connection() -> ClientConnection:
    made = ClientConnection("me", "tool", "1.0")
    request = made.negotiate()
    made.receive(answer(request, api_versions(api_versions=(0, 5), metadata=(0, 12), produce=(3, 13))))
    return made


def test_the_first_request_asks_for_versions_at_our_newest() -> None:
    made = ClientConnection("me", "tool", "1.0")
    (payload,) = FrameSplitter().feed(made.negotiate())
    header, body = decode_request_header(payload)
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (18, 5, 0, "me")
    request, _ = m.ApiVersionsRequest.decode(5, payload, body)
    assert (request.client_software_name, request.client_software_version) == ("tool", "1.0")
    assert not made.negotiated


def test_versions_are_the_newest_that_both_sides_know(connection: ClientConnection) -> None:
    assert connection.negotiated
    assert connection.version_for(3) == 12
    assert connection.version_for(0) == 13
    with pytest.raises(UnsupportedVersion, match="does not offer Heartbeat"):
        connection.send(m.HeartbeatRequest())


def test_a_broker_that_is_too_new_is_refused() -> None:
    made = ClientConnection()
    made.receive(answer(made.negotiate(), api_versions(metadata=(99, 120))))
    with pytest.raises(UnsupportedVersion, match="the broker has versions 99-120, we have 0-13"):
        made.send(m.MetadataRequest())


def test_a_refused_api_versions_request_is_repeated_at_a_version_the_broker_named() -> None:
    made = ClientConnection()
    refusal = api_versions(api_versions=(0, 3))
    refusal.error_code = 35
    ((_, response),) = made.receive(answer(made.negotiate(), refusal, 0))
    assert response == refusal
    assert not made.negotiated
    again = made.negotiate()
    assert again[6:8] == b"\0\x03"
    made.receive(answer(again, api_versions(metadata=(0, 9))))
    assert made.version_for(3) == 9


def test_a_refusal_without_a_version_leads_to_version_0() -> None:
    made = ClientConnection()
    made.receive(answer(made.negotiate(), m.ApiVersionsResponse(error_code=35), 0))
    assert made.negotiate()[6:8] == b"\0\0"


def test_responses_come_with_the_correlation_ids_of_their_requests(connection: ClientConnection) -> None:
    first = connection.send(m.MetadataRequest())
    second = connection.send(m.MetadataRequest(), 4)
    assert connection.in_flight == 2
    stream = answer(first, m.MetadataResponse(cluster_id="a")) + answer(
        second, m.MetadataResponse(cluster_id="b")
    )
    assert connection.receive(stream[:20]) == []
    responses = connection.receive(stream[20:])
    assert [(number, response.cluster_id) for number, response in responses] == [(1, "a"), (2, "b")]
    assert connection.in_flight == 0
    assert connection.last_correlation_id == 2


def test_produce_without_acknowledgement_waits_for_nothing(connection: ClientConnection) -> None:
    connection.send(m.ProduceRequest(acks=0))
    assert connection.in_flight == 0
    connection.send(m.ProduceRequest(acks=1))
    assert connection.in_flight == 1


def test_a_request_that_cannot_be_encoded_does_not_count_as_sent(connection: ClientConnection) -> None:
    before = connection.last_correlation_id
    with pytest.raises(UnencodableMessage):
        connection.send(m.ProduceRequest(acks=70000))
    assert (connection.in_flight, connection.last_correlation_id) == (0, before)


def test_a_response_out_of_order_is_a_violation(connection: ClientConnection) -> None:
    connection.send(m.MetadataRequest())
    other = connection.send(m.MetadataRequest())
    with pytest.raises(ProtocolViolation, match="correlation id 2, next is 1"):
        connection.receive(answer(other, m.MetadataResponse()))


def test_a_response_to_nothing_is_a_violation(connection: ClientConnection) -> None:
    with pytest.raises(ProtocolViolation, match="to no request"):
        connection.receive(b"\0\0\0\x04\0\0\0\x01")


def test_malformed_responses_are_told(connection: ClientConnection) -> None:
    request = connection.send(m.MetadataRequest())
    whole = answer(request, m.MetadataResponse(cluster_id="abc"))
    with pytest.raises(MalformedMessage):
        connection.receive(frame(whole[4:-5]))
    fresh = ClientConnection()
    fresh.negotiate()
    with pytest.raises(MalformedMessage):
        fresh.receive(b"\0\0\0\x05\0\0\0\0\0")


def test_responses_above_the_limit_are_a_violation() -> None:
    made = ClientConnection(max_response_bytes=100)
    made.negotiate()
    with pytest.raises(ProtocolViolation, match="a frame of 101 bytes"):
        made.receive(b"\0\0\0\x65")

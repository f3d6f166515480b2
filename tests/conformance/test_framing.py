"""Frames, headers and versions: what is answered and what closes (protocol.md 2.1-2.3, 7)."""

from __future__ import annotations

import struct

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.frames import frame
from protocol.headers import RequestHeader, encode_request_header
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient


def header(api_key: int, version: int, correlation_id: int = 5) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, 1) + b"t"


@pytest.mark.parametrize("size", [-1, -(2**31), 104_857_601, 2**31 - 1, 0])
def test_an_impossible_frame_size_closes(wire: WireClient, size: int) -> None:
    wire.write(struct.pack(">i", size))
    assert wire.is_closed_by_peer()


@pytest.mark.parametrize(
    "payload",
    [
        b"\0",
        b"\0\x12",
        header(999, 0),
        header(-1, 0),
        header(3, 99) + b"\0" * 8,
        header(3, -1) + b"\0" * 8,
        header(3, 12),  # no body at all
        header(3, 1) + struct.pack(">i", 2**31 - 1) + b"x" * 10,
        header(3, 1) + struct.pack(">ih", 1, -1),  # a null name where none may be
        header(3, 1) + struct.pack(">ih", 1, 500) + b"abc",  # a string longer than the frame
        header(9, 7) + b"\xff\xff\xff\xff\x0f" + b"\0" * 10,
    ],
)
def test_what_cannot_be_parsed_closes_and_the_next_client_is_served(
    either_broker: OttlaProcess | KafkaProcess, wire: WireClient, payload: bytes
) -> None:
    wire.write(struct.pack(">i", len(payload)) + payload)
    assert wire.is_closed_by_peer()
    with WireClient(either_broker.bootstrap_servers) as other:
        assert other.metadata().cluster_id


@pytest.mark.parametrize("version", [6, 7, 99, 32767])
def test_a_too_new_api_versions_is_answered_35_in_version_0(wire: WireClient, version: int) -> None:
    body = m.ApiVersionsRequest(client_software_name="x", client_software_version="1").encode(3)
    wire.write_request(18, version, body, correlation_id=77)
    payload = wire.read_frame()
    assert struct.unpack_from(">i", payload)[0] == 77
    answer, end = m.ApiVersionsResponse.decode(0, payload, 4)
    assert end == len(payload)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(a.api_key, a.min_version, a.max_version) for a in answer.api_keys] == [(18, 0, 5)]
    # The connection goes on.
    assert wire.send(m.ApiVersionsRequest(), 0).error_code == 0


@pytest.mark.parametrize("version", range(6))
def test_api_versions_at_every_version(wire: WireClient, version: int) -> None:
    asked = m.ApiVersionsRequest(client_software_name="my-client", client_software_version="1.2.3-rc1")
    answer = wire.send(asked, version)
    ranges = {a.api_key: (a.min_version, a.max_version) for a in answer.api_keys}
    assert answer.error_code == 0
    assert ranges[18] == (0, 5)
    assert ranges[0][0] == 0  # librdkafka drops codecs otherwise
    assert ranges[0][1] >= 13
    assert ranges[1][1] >= 18


@pytest.mark.parametrize("software", ["", " ", "a b", "-a", "a-", "a_b", ".", "ä", "a" * 10 + "!"])
def test_a_client_software_name_out_of_bounds_is_42(wire: WireClient, software: str) -> None:
    answer = wire.send(m.ApiVersionsRequest(client_software_name=software, client_software_version="1"), 3)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    answer = wire.send(m.ApiVersionsRequest(client_software_name="x", client_software_version=software), 3)
    assert (answer.error_code, answer.api_keys) == (ErrorCode.INVALID_REQUEST, [])


def test_api_versions_5_knows_whom_it_talks_to(wire: WireClient) -> None:
    cluster = wire.metadata().cluster_id
    node = wire.metadata().brokers[0].node_id

    def ask(cluster_id: str | None, node_id: int) -> int:
        asked = m.ApiVersionsRequest(
            client_software_name="x", client_software_version="1", cluster_id=cluster_id, node_id=node_id
        )
        return int(wire.send(asked, 5).error_code)

    other = "AAAAAAAAAAAAAAAAAAAAAA"
    assert [ask(cluster, node), ask(None, -1)] == [0, 0]
    assert [ask(*who) for who in ((other, node), (cluster, node + 1), (other, -5))] == [129] * 3
    assert [ask(*who) for who in ((None, node), (cluster, -1), (other, -1), ("", -1))] == [42] * 4


def test_bytes_after_the_body_do_no_harm(wire: WireClient) -> None:
    body = m.MetadataRequest(topics=[]).encode(9) + b"junk after the body"
    wire.write_request(3, 9, body, correlation_id=3)
    assert struct.unpack_from(">i", wire.read_frame())[0] == 3
    assert wire.metadata().cluster_id


def test_unknown_repeated_and_unordered_tags_are_accepted(wire: WireClient) -> None:
    body = m.MetadataRequest(topics=[]).encode(9)
    assert body.endswith(b"\0")
    tags = bytes([3, 9, 1, 0xAA, 4, 2, 0xBB, 0xCC, 9, 0])
    wire.write_request(3, 9, body[:-1] + tags, correlation_id=3)
    assert struct.unpack_from(">i", wire.read_frame())[0] == 3


def test_a_client_id_may_be_null_or_minus_two_long(wire: WireClient) -> None:
    for length in (-1, -2):
        body = m.MetadataRequest(topics=[]).encode(1)
        payload = struct.pack(">hhih", 3, 1, 9, length) + body
        wire.write(struct.pack(">i", len(payload)) + payload)
        assert struct.unpack_from(">i", wire.read_frame())[0] == 9


def test_an_array_length_of_minus_two_means_null(wire: WireClient) -> None:
    wire.write_request(3, 1, struct.pack(">i", -2), correlation_id=4)
    payload = wire.read_frame()
    assert m.MetadataResponse.decode(1, payload, 4)[0].brokers


def test_a_frame_may_come_byte_by_byte(wire: WireClient) -> None:
    whole = frame(
        encode_request_header(RequestHeader(3, 1, 8, "slow")), m.MetadataRequest(topics=[]).encode(1)
    )
    for byte in whole:
        wire.write(bytes([byte]))
    assert struct.unpack_from(">i", wire.read_frame())[0] == 8


def test_a_hundred_requests_in_one_write_are_answered_in_order(wire: WireClient) -> None:
    one = m.MetadataRequest(topics=[]).encode(1)
    data = b"".join(frame(encode_request_header(RequestHeader(3, 1, i, "many")), one) for i in range(100))
    wire.write(data)
    assert [struct.unpack_from(">i", wire.read_frame())[0] for _ in range(100)] == list(range(100))

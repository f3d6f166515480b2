"""Requests that are junk, or that ask for very much in few bytes (promises.md, the table of figures)."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest

from protocol import messages as m
from protocol.primitives import uvarint
from tests.hostile.attacks import ask, at_once, body_frame, connect, raw_frame, request_frame
from tests.hostile.victim import MIB, NORMAL_CLIENT_S, STRANGER_BYTES, Victim

API_KEYS = range(-1, 96)
VERSIONS = range(-1, 17)
ANSWER_WAIT_S = 0.2


def test_every_api_at_every_version_with_junk(victim: Victim) -> None:
    """1,600 frames and more: served on, flat memory, and at most one log line for each that names it."""
    chance = random.Random(1)
    bodies = [b"", b"\xff" * 100, b"\x7f" * 64, bytes(300), b"\x80" * 40, bytes(16)]
    before = len(victim.lines())
    frames = 0
    with victim.normal_client() as client, victim.memory() as memory:
        for key in API_KEYS:
            for version in VERSIONS:
                body = chance.choice([*bodies, chance.randbytes(200)])
                with connect(victim) as peer:
                    peer.sendall(raw_frame(key, version, body))
                    peer.settimeout(ANSWER_WAIT_S)
                    with suppress(TimeoutError, ConnectionError):  # acks=0 and long polls need not answer
                        peer.recv(1 << 16)
                frames += 1
    assert frames >= 1600
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < 32 * MIB
    lines = victim.lines(before)
    closings = [line for line in lines if "Closing the connection" in line]
    assert len(closings) <= frames
    assert all("'evil'" in line for line in closings)
    assert not [line for line in lines if "Traceback" in line or " ERROR " in line]


def honest_elements() -> bytes:
    """8 MiB of names of no bytes, two bytes each, counted rightly."""
    count = 4 * MIB - 4
    return body_frame(3, 1, struct.pack(">i", count) + bytes(2 * count))


def honest_tags() -> bytes:
    """8 MiB of tagged fields."""
    count = 1_400_000
    tags = b"".join(uvarint(tag) + b"\0" for tag in range(count))
    return body_frame(3, 9, b"\x01\0\0\0" + uvarint(count) + tags)


def honest_header_tags() -> bytes:
    """The same in the header."""
    count = 1_400_000
    tags = b"".join(uvarint(tag) + b"\0" for tag in range(count))
    payload = struct.pack(">hhih", 3, 9, 7, -1) + uvarint(count) + tags + b"\x01\0\0\0\0"
    return struct.pack(">i", len(payload)) + payload


def honest_offsets() -> bytes:
    """8 MiB of partitions of 12 bytes in ListOffsets."""
    count = 8 * MIB // 12
    partitions = struct.pack(">i", count) + bytes(12 * count)
    return body_frame(2, 1, struct.pack(">iih", -1, 1, 1) + b"t" + partitions)


@pytest.mark.parametrize("attack", [honest_elements, honest_tags, honest_header_tags, honest_offsets])
def test_four_times_8_mib_of_tiny_elements(victim: Victim, attack) -> None:
    data = attack()
    before = len(victim.lines())
    with victim.normal_client() as client, victim.memory() as memory:
        assert at_once(4, lambda: ask(victim, data)) == [None] * 4
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < STRANGER_BYTES
    lines = [line for line in victim.lines(before) if "Closing" in line]
    assert len(lines) == 4
    assert all("exceed" in line or "tagged" in line for line in lines), lines


def most_names() -> bytes:
    return body_frame(3, 1, struct.pack(">i", 99_000) + bytes(2 * 99_000))


def most_unknown_topics() -> bytes:
    names = [f"no-{number}" for number in range(99_000)]
    topics = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return request_frame(m.MetadataRequest(topics=topics, allow_auto_topic_creation=False), 9)


def most_fetched() -> bytes:
    request = m.FetchRequest
    places = [request.FetchPartition(partition=number, partition_max_bytes=1000) for number in range(95_000)]
    topics = [request.FetchTopic(topic="t", partitions=places)]
    return request_frame(request(session_id=0, session_epoch=0, max_wait_ms=0, topics=topics), 12)


def most_bad_topics() -> bytes:
    request = m.CreateTopicsRequest
    topics = [request.CreatableTopic(name=f"a b {number}", num_partitions=1) for number in range(50_000)]
    return request_frame(request(topics=topics, timeout_ms=1000), 5)


@pytest.mark.parametrize("attack", [most_names, most_unknown_topics, most_fetched, most_bad_topics])
def test_as_many_elements_as_are_allowed(victim: Victim, attack) -> None:
    data = attack()
    with victim.normal_client() as client, victim.memory() as memory:
        answers = at_once(4, lambda: [ask(victim, data) for _ in range(2)])
    assert all(size is not None for sizes in answers for size in sizes)
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < STRANGER_BYTES


def test_a_resource_that_is_described_ten_thousand_times(victim: Victim) -> None:
    """Each of them has 300 settings."""
    with victim.wire() as wire:
        node = wire.metadata().brokers[0].node_id
    request = m.DescribeConfigsRequest
    resource = request.DescribeConfigsResource(resource_type=4, resource_name=str(node))
    data = request_frame(request(resources=[resource] * 10_000, include_synonyms=True), 4)
    with victim.normal_client() as client, victim.memory() as memory:
        size = ask(victim, data)
    assert size is not None
    assert size < MIB
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < 32 * MIB


def long_topic_names(api_key: int, version: int, count: int) -> bytes:
    """Names of 32 KB that take four times as much once they are decoded."""
    if api_key == 0:
        request = m.ProduceRequest
        topics = [request.TopicProduceData(name=f"{'x' * 32_000}\U0001f600{n}") for n in range(count)]
        return request_frame(request(acks=1, timeout_ms=1, topic_data=topics), version)
    names = [f"{'x' * 32_000}\U0001f600{number}" for number in range(count)]
    topics = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return request_frame(m.MetadataRequest(topics=topics), version)


@pytest.mark.parametrize(("api_key", "version", "count"), [(0, 9, 2900), (3, 9, 2900), (3, 9, 480)])
def test_strings_of_90_mib(victim: Victim, api_key: int, version: int, count: int) -> None:
    data = long_topic_names(api_key, version, count)
    with victim.normal_client() as client, victim.memory() as memory:
        answers = at_once(2, lambda: ask(victim, data))
    if count > 1000:
        assert answers == [None, None]
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < STRANGER_BYTES


def test_names_that_would_be_paths_are_refused_and_make_no_file(victim: Victim) -> None:
    request = m.CreateTopicsRequest
    before = sorted(victim.broker.directory.rglob("*"))
    with victim.wire() as wire:
        for name in ("", ".", "..", "a/b", "../../etc", "nul\0", "x" * 250, "ä", "a b"):
            topic = request.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            assert wire.send(request(topics=[topic], timeout_ms=1000), 5).topics[0].error_code == 17
            assert wire.metadata(name).topics[0].error_code == 17
            assert wire.produce(name, b"x" * 70).error_code in (3, 17)
    assert sorted(victim.broker.directory.rglob("*")) == before


def test_a_forged_replica_id_reads_no_more_than_a_consumer(victim: Victim) -> None:
    """CVE-2018-1288: a fetch that claims to be a replica is not taken for one."""
    with victim.wire() as wire:
        wire.create_topic("t")
        wire.produce_values("t", b"a")
        for replica_id in (0, 1, 7):
            answer = wire.fetch("t", 0, version=12, replica_id=replica_id)
            assert (answer.error_code, bytes(answer.records or b"")) == (6, b"")
        assert wire.fetch("t", 0).records

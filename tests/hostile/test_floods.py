"""Connections by the thousand, requests without end, answers nobody reads, frames that never end."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from protocol import messages as m
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.hostile.attacks import allow_descriptors, at_once, connect, fetch, flood, produce, request_frame
from tests.hostile.victim import MIB, NORMAL_CLIENT_S, STRANGER_BYTES, Victim
from tests.support.waiting import wait_until

UNREAD_BYTES = 64 * MIB
CONNECTIONS = 5000


@contextmanager
def closing(peers: list[socket.socket]) -> Iterator[None]:
    with ExitStack() as stack:
        for peer in peers:
            stack.enter_context(peer)
        yield


def dropped(peers: list[socket.socket]) -> int:
    """How many of these the broker has closed."""
    poll = select.poll()
    for peer in peers:
        poll.register(peer, select.POLLRDHUP)
    return len(poll.poll(0))


def api_versions(victim: Victim) -> bytes:
    return request_frame(m.ApiVersionsRequest(), 0)


def all_topics(victim: Victim) -> bytes:
    with victim.wire() as wire:
        wire.create_topic("big", partitions=500)
    return request_frame(m.MetadataRequest(topics=None), 1)


def broker_settings(victim: Victim) -> bytes:
    with victim.wire() as wire:
        node = wire.metadata().brokers[0].node_id
    request = m.DescribeConfigsRequest
    resource = request.DescribeConfigsResource(resource_type=4, resource_name=str(node))
    return request_frame(request(resources=[resource], include_synonyms=True), 4)


def fill(victim: Victim) -> None:
    with victim.wire() as wire:
        wire.create_topic("t")
        for _ in range(100):
            wire.produce_values("t", bytes(30_000))


def fetched_by_sendfile(victim: Victim) -> bytes:
    fill(victim)
    return request_frame(fetch("t"), 4)


def fetched_from_memory(victim: Victim) -> bytes:
    fill(victim)
    return request_frame(fetch("t", 99), 12)


def fetched_and_converted(victim: Victim) -> bytes:
    fill(victim)
    return request_frame(fetch("t"), 1)


def produced(victim: Victim) -> bytes:
    with victim.wire() as wire:
        wire.create_topic("t")
    return request_frame(produce("t", b"not a batch"), 9)


@pytest.mark.parametrize(
    "attack",
    [api_versions, all_topics, broker_settings, fetched_by_sendfile, fetched_from_memory, produced],
)
def test_endless_requests_whose_answers_are_not_read(victim: Victim, attack) -> None:
    """One connection, then fifty."""
    data = attack(victim) * 200
    for connections, growth in ((1, UNREAD_BYTES), (50, UNREAD_BYTES)):
        with victim.normal_client() as client, victim.memory() as memory:
            peers = flood(victim, data, connections)
        with closing(peers):
            assert len(peers) == connections
            assert client.worst_s < NORMAL_CLIENT_S, client
            assert memory.peak_growth < growth, memory


def test_converted_answers_that_nobody_reads(victim: Victim) -> None:
    """They lie in memory. All together have a limit, beyond which those stuck for longest are dropped."""
    data = fetched_and_converted(victim) * 200
    before = len(victim.lines())
    with victim.normal_client() as client, victim.memory() as memory:
        peers = flood(victim, data, 100)
    with closing(peers):
        assert client.worst_s < NORMAL_CLIENT_S, client
        assert memory.peak_growth < STRANGER_BYTES, memory
        # Those that the flood no longer saw, and those that were dropped when it had stopped looking.
        wait_until(
            lambda: (
                sum("answers are not read" in line for line in victim.lines(before))
                == 100 - len(peers) + dropped(peers)
            ),
            "one log line for each connection that was dropped, and no others",
        )


def test_5000_connections_of_10_kib(victim: Victim) -> None:
    """Idle ones, the same after a request each, and the same with the start of a frame; all gone after."""
    count = min(CONNECTIONS, allow_descriptors(CONNECTIONS + 500) - 500)
    assert victim.serves()
    descriptors, before = victim.descriptors(), victim.rss()
    peers = [connect(victim) for _ in range(count)]
    with closing(peers):
        assert victim.serves()
        assert victim.rss() - before < count * 10 * 1024
        for peer in peers:
            peer.sendall(request_frame(m.ApiVersionsRequest(), 0))
        for peer in peers:
            assert peer.recv(1 << 16)
        assert victim.rss() - before < count * 10 * 1024
        for peer in peers:
            peer.sendall(struct.pack(">ihh", 100_000, 3, 9))
        with victim.normal_client() as client:
            assert victim.serves()
        assert client.worst_s < NORMAL_CLIENT_S, client
        assert victim.rss() - before < count * 10 * 1024
    assert victim.serves()
    wait_until(lambda: victim.descriptors() <= descriptors + 2, "the connections to be closed")


def test_100_mib_announced_by_a_thousand_and_nothing_sent(victim: Victim) -> None:
    with victim.normal_client() as client, victim.memory() as memory:
        peers = [connect(victim) for _ in range(1000)]
        with closing(peers):
            for peer in peers:
                peer.sendall(struct.pack(">i", 100 * MIB))
            assert victim.serves()
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < 32 * MIB, memory


def test_frames_that_never_end_share_a_budget(victim: Victim) -> None:
    """Eight produce requests of 90 MiB that stop after 80: those that do not get on are given up."""
    head = struct.pack(">ihhih", 90 * MIB, 0, 9, 7, -1)

    def send() -> bool:
        with connect(victim, 8.0) as peer:
            peer.sendall(head)
            for _ in range(80):
                peer.sendall(bytes(MIB))
            peer.recv(1)
        return True

    def try_it() -> bool:
        with suppress(OSError):
            return send()
        return False

    with victim.normal_client() as client, victim.memory() as memory:
        at_once(8, try_it)
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < STRANGER_BYTES, memory
    assert any("hold too much memory" in line for line in victim.lines())


@pytest.mark.parametrize("at_first", [0, 8 << 10, 20 << 10, 64 << 10])
def test_a_large_request_behind_a_long_poll_is_not_collected(victim: Victim, at_first: int) -> None:
    """However much of it comes together with the long poll: below and above what may wait unpaused."""
    topic = f"behind-a-long-poll-{at_first}"
    with victim.wire() as wire:
        wire.create_topic(topic)
    waiting = request_frame(fetch(topic, max_wait_ms=60_000, min_bytes=1 << 20), 4)
    behind = struct.pack(">ihhih", 90 * MIB, 0, 9, 7, -1) + bytes(at_first)
    with victim.normal_client() as client, victim.memory() as memory:
        peers = [connect(victim) for _ in range(6)]
        with closing(peers):
            for peer in peers:
                peer.sendall(waiting + behind)
                peer.settimeout(0.3)
                with suppress(TimeoutError):
                    peer.sendall(bytes(90 * MIB))
    assert client.worst_s < NORMAL_CLIENT_S, client
    assert memory.peak_growth < 64 * MIB, memory


def test_slow_clients_that_send_byte_by_byte(victim: Victim) -> None:
    data = request_frame(m.MetadataRequest(topics=[]), 9)
    peers = [connect(victim) for _ in range(200)]
    with closing(peers), victim.normal_client() as client:
        for at in range(len(data)):
            for peer in peers:
                peer.sendall(data[at : at + 1])
        assert all(peer.recv(1 << 16) for peer in peers)
    assert client.worst_s < NORMAL_CLIENT_S, client


def test_500_that_connect_fetch_and_are_gone_leave_nothing(victim: Victim) -> None:
    with victim.wire() as wire:
        wire.create_topic("t")
    requests = [
        request_frame(fetch("t", max_wait_ms=600_000, min_bytes=1 << 20), version) for version in (4, 12)
    ]
    session = request_frame(fetch("t", max_wait_ms=600_000, session_epoch=0, min_bytes=1 << 20), 12)
    assert victim.serves()
    descriptors = victim.descriptors()
    with victim.memory() as memory:
        for number in range(500):
            peer = connect(victim)
            peer.sendall((*requests, session)[number % 3])
            if number % 2:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
            peer.close()
        wait_until(lambda: victim.descriptors() <= descriptors + 1, "the connections to be closed")
        with victim.wire() as wire:
            wire.produce_values("t", b"wakes whoever still waits")
    assert memory.growth < 16 * MIB, memory
    assert not [line for line in victim.lines() if " ERROR " in line]


def test_endless_producer_ids_take_bounded_memory(victim: Victim) -> None:
    """Any number may be an id, and each is remembered: 130,000 of them, of which 100,000 are kept."""
    with victim.wire() as wire:
        wire.create_topic("t")
        begun = 0
        with victim.memory() as memory:
            for first in range(10_000, 140_000, 1000):
                frames = [
                    request_frame(
                        produce(
                            "t",
                            build_batch(
                                [Record(0, 1_700_000_000_000, None, b"", ())],
                                producer_id=number,
                                producer_epoch=0,
                                base_sequence=0,
                            ),
                        ),
                        9,
                    )
                    for number in range(first, first + 1000)
                ]
                wire.write(b"".join(frames))
                for _ in frames:
                    assert wire.read_frame()
                begun += len(frames)
        assert wire.list_offset("t", -1).offset == begun
    assert memory.peak_growth < 100 * MIB, memory

"""What attackers send: frames by hand, endless requests, many connections."""

from __future__ import annotations

import resource
import select
import socket
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from protocol import messages as m
from protocol.frames import frame
from protocol.headers import RequestHeader, encode_request_header
from tests.hostile.victim import Victim

_T = TypeVar("_T")

QUIET_S = 0.5


def request_frame(request: Any, version: int, client_id: str = "evil") -> bytes:
    """A whole frame with a request as our codec makes it."""
    return body_frame(type(request).API_KEY, version, request.encode(version), client_id)


def body_frame(api_key: int, version: int, body: bytes, client_id: str = "evil") -> bytes:
    """A whole frame with a right header around any body."""
    return frame(encode_request_header(RequestHeader(api_key, version, 7, client_id)), body)


def raw_frame(api_key: int, version: int, body: bytes) -> bytes:
    """A whole frame with a header of the oldest layout, whatever the API, around any body."""
    payload = struct.pack(">hhih", api_key, version, 7, 4) + b"evil" + body
    return struct.pack(">i", len(payload)) + payload


def connect(victim: Victim, timeout_s: float = 60.0) -> socket.socket:
    return socket.create_connection((victim.broker.host, victim.broker.port), timeout_s)


def ask(victim: Victim, data: bytes, timeout_s: float = 120.0) -> int | None:
    """Send bytes; the size of the one answer, None where the broker closes instead."""
    with connect(victim, timeout_s) as peer:
        try:
            peer.sendall(data)
            answer = bytearray()
            while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
                part = peer.recv(1 << 20)
                if not part:
                    return None
                answer += part
        except ConnectionError:
            return None
        return len(answer)


def at_once(count: int, action: Callable[[], _T]) -> list[_T]:
    """The same from several threads."""
    with ThreadPoolExecutor(count) as pool:
        return [future.result() for future in [pool.submit(action) for _ in range(count)]]


def flood(victim: Victim, data: bytes, connections: int) -> list[socket.socket]:
    """Sends `data` again and again on many connections, and reads nothing, until the broker takes no more."""
    peers = {connect(victim): 0 for _ in range(connections)}
    for peer in peers:
        peer.setblocking(False)
    while writable := select.select([], list(peers), [], QUIET_S)[1]:
        for peer in writable:
            try:
                peers[peer] = (peers[peer] + peer.send(memoryview(data)[peers[peer] :])) % len(data)
            except BlockingIOError:
                continue
            except ConnectionError:
                peer.close()
                del peers[peer]
    return list(peers)


def allow_descriptors(count: int) -> int:
    """Raises this process's limit of descriptors; how many it may have then, at most `count`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed


def fetch(topic: str, offset: int = 0, **fields: Any) -> m.FetchRequest:
    """A fetch of partition 0."""
    request = m.FetchRequest
    place = request.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=50 << 20)
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 50 << 20, **fields}
    return request(topics=[request.FetchTopic(topic=topic, partitions=[place])], **limits)


def produce(topic: str, records: bytes | bytearray, acks: int = 1) -> m.ProduceRequest:
    """A produce to partition 0."""
    request = m.ProduceRequest
    place = request.PartitionProduceData(index=0, records=records)
    return request(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[request.TopicProduceData(name=topic, partition_data=[place])],
    )

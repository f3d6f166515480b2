"""Bytes of other protocols on a Kafka port: one line that names them, HTTP gets an answer, all are closed."""

from __future__ import annotations

import pytest

from tests.hostile.attacks import connect
from tests.hostile.victim import Victim

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(190)
HTTP = b"GET / HTTP/1.1\r\nHost: broker:9092\r\n\r\n"
PROXY_2 = b"\r\n\r\n\0\r\nQUIT\n" + bytes(16)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (HTTP, "HTTP"),
        (b"POST /topics HTTP/1.1\r\n\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP"),
        (TLS_HELLO, "TLS"),
        (b"PROXY TCP4 10.0.0.1 10.0.0.2 5000 9092\r\n", "PROXY"),
        (PROXY_2, "PROXY"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"),
        (b"\x80\0\0\0", "socket.request.max.bytes"),
        (b"\0\0\0\0\0\0\0\0", "socket.request.max.bytes"),
    ],
)
def test_one_line_names_it_and_it_is_closed(victim: Victim, data: bytes, name: str) -> None:
    before = len(victim.lines())
    with connect(victim) as peer:
        peer.sendall(data)
        address = "{}:{}".format(*peer.getsockname())
        answer = b""
        while part := peer.recv(1 << 16):
            answer += part
    lines = victim.lines(before)
    assert len(lines) == 1, lines
    assert name in lines[0]
    assert address in lines[0]
    assert bool(answer) == (name == "HTTP")


def test_the_answer_to_http_is_a_right_one(victim: Victim) -> None:
    with connect(victim) as peer:
        peer.sendall(HTTP)
        answer = b""
        while part := peer.recv(1 << 16):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = dict(line.split(b": ") for line in head.split(b"\r\n")[1:])
    assert head.startswith(b"HTTP/1.1 400 ")
    assert int(fields[b"Content-Length"]) == len(body)
    assert b"Kafka" in body


def test_the_first_bytes_alone_are_enough_or_wait(victim: Victim) -> None:
    """A probe that sends less than four bytes and leaves costs nothing, not even a line."""
    before = len(victim.lines())
    for start in (b"", b"G", b"GET"):
        with connect(victim) as peer:
            peer.sendall(start)
    assert victim.serves()
    assert victim.lines(before) == []

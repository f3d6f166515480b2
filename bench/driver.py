"""The lean client: epoll, precomputed frames, one receive buffer, answers counted by their bytes.

Each connection sends its ring of requests round and round with `depth` of them in flight. The first answer of
each connection is read apart and handed to a check; from then on all answers must have its size, which is
verified at the end: when the time is up, what is in flight is read to its last byte.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

BUFFER_BYTES = 1 << 20
DRAIN_SECONDS = 20.0
_LENGTH = struct.Struct(">i")


@dataclass(slots=True)
class Totals:
    """What a run of the driver saw."""

    answers: int
    answer_bytes: int
    request_bytes: int
    seconds: float
    in_flight: int


class Ring:
    """The requests of one connection: frames of one size, sent in order again and again."""

    def __init__(self, frames: Sequence[bytes], depth: int) -> None:
        sizes = {len(frame) for frame in frames}
        assert len(sizes) == 1, "frames of a ring have one size"
        self.count = len(frames)
        self.size = sizes.pop()
        wrap = [frames[i % self.count] for i in range(depth)]
        self.data = memoryview(b"".join([*frames, *wrap]))
        self.first = frames[0]


class _Connection:
    __slots__ = ("at", "end", "have", "owed", "ring", "sent", "size", "sock")

    def __init__(self, sock: socket.socket, ring: Ring, size: int) -> None:
        self.sock = sock
        self.ring = ring
        self.size = size  # of an answer
        self.have = 0  # bytes of an answer that is not complete
        self.at = 0  # in the ring
        self.sent = self.end = 0  # of the ring's bytes being sent
        self.owed = 0  # requests to send once that is through

    def push(self, count: int) -> bool:
        """Send so many more requests; False if the socket would not take all of it."""
        if self.sent < self.end:
            self.owed += count
            return False
        ring = self.ring
        self.sent = self.at * ring.size
        self.end = self.sent + count * ring.size
        self.at = (self.at + count) % ring.count
        return self.go_on()

    def go_on(self) -> bool:
        while self.sent < self.end:
            try:
                self.sent += self.sock.send(self.ring.data[self.sent : self.end])
            except BlockingIOError:
                return False
        if self.owed:
            count, self.owed = self.owed, 0
            return self.push(count)
        return True


def connect(host: str, port: int) -> socket.socket:
    """A blocking socket without Nagle's delay."""
    sock = socket.create_connection((host, port), timeout=30)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def receive_answer(sock: socket.socket) -> bytes:
    """One answer with its length field."""
    answer = bytearray()
    while len(answer) < 4 or len(answer) < 4 + _LENGTH.unpack_from(answer)[0]:
        wanted = 4 + _LENGTH.unpack_from(answer)[0] - len(answer) if len(answer) >= 4 else 4
        piece = sock.recv(min(wanted, BUFFER_BYTES))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        answer += piece
    return bytes(answer)


def call(sock: socket.socket, frame: bytes) -> bytes:
    """One request and its answer."""
    sock.sendall(frame)
    return receive_answer(sock)


def drive(
    address: tuple[str, int],
    rings: Sequence[Ring],
    depth: int,
    seconds: float,
    check: Callable[[bytes], object],
    max_request_bytes: int = 0,
) -> Totals:
    """Run the load for `seconds` and to its first answer, or until `max_request_bytes` were acknowledged."""
    return drive_several([(address, ring) for ring in rings], depth, seconds, check, max_request_bytes)


def drive_several(
    rings: Sequence[tuple[tuple[str, int], Ring]],
    depth: int,
    seconds: float,
    check: Callable[[bytes], object],
    max_request_bytes: int = 0,
) -> Totals:
    """The same where each connection has an address of its own."""
    connections: list[_Connection] = []
    try:
        connections.extend(_open(address, ring, check) for address, ring in rings)
        return _drive(connections, depth, seconds, max_request_bytes)
    finally:
        for c in connections:
            c.sock.close()


def _drive(connections: Sequence[_Connection], depth: int, seconds: float, max_request_bytes: int) -> Totals:
    poll = select.epoll()
    by_fd = {c.sock.fileno(): c for c in connections}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    buffer = bytearray(BUFFER_BYTES)
    start = time.perf_counter()
    for c in connections:
        if not c.push(depth):
            poll.modify(c.sock.fileno(), select.EPOLLIN | select.EPOLLOUT)
    answers = total = 0
    end = start + seconds
    request_bytes = connections[0].ring.size
    max_answers = max_request_bytes // request_bytes if max_request_bytes else 1 << 62
    while time.perf_counter() < (end if answers else end + DRAIN_SECONDS) and answers < max_answers:
        for fd, events in poll.poll(0.2):
            c = by_fd[fd]
            if events & select.EPOLLOUT and c.go_on():
                poll.modify(fd, select.EPOLLIN)
            if not events & select.EPOLLIN:
                continue
            n = c.sock.recv_into(buffer)
            if not n:
                raise ConnectionError("the broker closed the connection")
            got, c.have = divmod(c.have + n, c.size)
            total += n
            if got:
                answers += got
                if not c.push(got):
                    poll.modify(fd, select.EPOLLIN | select.EPOLLOUT)
    took = time.perf_counter() - start
    poll.close()
    for c in connections:
        _drain(c, depth, buffer)
    return Totals(answers, total, answers * request_bytes, took, depth * len(connections))


def _open(address: tuple[str, int], ring: Ring, check: Callable[[bytes], object]) -> _Connection:
    sock = connect(*address)
    try:
        answer = call(sock, ring.first)
        check(answer)
    except BaseException:
        sock.close()
        raise
    sock.setblocking(False)
    return _Connection(sock, ring, len(answer))


def _drain(c: _Connection, depth: int, buffer: bytearray) -> None:
    """Read what is in flight: exactly `depth` answers, or the sizes did not agree on the way."""
    c.sock.settimeout(DRAIN_SECONDS)
    rest = c.ring.data[c.sent : c.end]
    if rest:
        c.sock.sendall(rest)
    left = (depth - c.owed) * c.size - c.have
    while left > 0:
        try:
            n = c.sock.recv_into(buffer, min(left, BUFFER_BYTES))
        except TimeoutError:
            break
        if not n:
            raise ConnectionError("the broker closed the connection with answers outstanding")
        left -= n
    c.sock.setblocking(False)
    try:
        extra = len(c.sock.recv(1))
    except BlockingIOError:
        extra = 0
    if left or extra:
        raise RuntimeError("answers differ in size: the broker refused or cut some of them")

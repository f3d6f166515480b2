"""A small blocking client that speaks the protocol to any broker, for conformance tests.

    with Wire(broker.bootstrap_servers) as wire:
        response = wire.send(m.MetadataRequest(topics=None), version=12)

`send` encodes with our codecs; `write` and `read_frame` move bytes that no codec would make. A test that
doubts the codecs themselves compares with kafka-python instead.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Self

from protocol import messages as m
from protocol.client_connection import ClientConnection
from protocol.frames import frame
from protocol.headers import RequestHeader, encode_request_header

TIMEOUT_S = 60.0


class Wire:
    """One connection. Versions are negotiated on the first `send` without a version."""

    def __init__(self, address: str, client_id: str | None = "wire", timeout_s: float = TIMEOUT_S) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.machine = ClientConnection(client_id, "ottla-tests", "1.0")
        self._waiting: dict[int, m.Message] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def versions(self) -> dict[int, tuple[int, int]]:
        """The broker's version ranges by API key."""
        while not self.machine.negotiated:
            self.socket.sendall(self.machine.negotiate())
            self._response_to(self.machine.last_correlation_id)
        return self.machine.versions

    def send(self, request: m.Message, version: int | None = None) -> Any:
        """Sends a request and returns its response; None for a Produce with acks=0."""
        return self.receive(self.post(request, version))

    def post(self, request: m.Message, version: int | None = None) -> int:
        """Sends a request without waiting; returns its correlation id for `receive`."""
        if version is None:
            self.versions()
        self.socket.sendall(self.machine.send(request, version))
        return self.machine.last_correlation_id

    def receive(self, correlation_id: int) -> Any:
        """The response to a posted request; None when none is to come."""
        if correlation_id not in self._waiting and not self.machine.in_flight:
            return None
        return self._response_to(correlation_id)

    def write(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self.socket.sendall(data)

    def write_request(self, api_key: int, api_version: int, body: bytes, correlation_id: int = 1) -> None:
        """Sends a well-formed frame and header around any body; read the answer with `read_frame`."""
        header = encode_request_header(
            RequestHeader(api_key, api_version, correlation_id, self.machine.client_id)
        )
        self.write(frame(header, body))

    def read_frame(self) -> bytes:
        """The next frame's payload; ConnectionError where the broker closes instead."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def is_closed_by_peer(self) -> bool:
        """Waits for the next thing the broker does: True when it closes, False when it sends."""
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b""
        except ConnectionError:
            return True

    def _response_to(self, correlation_id: int) -> Any:
        while correlation_id not in self._waiting:
            received = self.socket.recv(1 << 16)
            if not received:
                raise ConnectionError("the broker closed the connection")
            self._waiting.update(self.machine.receive(received))
        return self._waiting.pop(correlation_id)

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = self.socket.recv(size - len(received))
            if not part:
                raise ConnectionError(f"closed after {len(received)} of {size} bytes")
            received += part
        return bytes(received)

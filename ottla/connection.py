"""One blocking connection to a broker: the socket around `protocol.client_connection`.

For our tools, which ask one thing at a time; nothing here is for the broker. Every failure is a
ClientError whose text names the address and what to do.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self

from ottla.version import __version__
from protocol import messages as m
from protocol.client_connection import ClientConnection
from protocol.errors import ErrorCode, ProtocolViolation, UnsupportedVersion

RECEIVE_BYTES = 256 * 1024
NEGOTIATION_ATTEMPTS = 3


class ClientError(Exception):
    """A request that got no answer, or a refusal; `error` is the broker's code where there was one."""

    def __init__(self, message: str, error: ErrorCode | None = None) -> None:
        super().__init__(message)
        self.error = error

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.error is not None and self.error.retriable


class Connection:
    """A connected, negotiated socket; not for several threads at a time."""

    def __init__(self, host: str, port: int, client_id: str, timeout_s: float) -> None:
        self.address = f"{host}:{port}"
        self._machine = ClientConnection(client_id, "ottla", __version__)
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise ClientError(
                f"no broker answers at {self.address} ({error}): is it running, and is the address right?"
            ) from error
        try:
            self._negotiate()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the socket; harmless when it is closed."""
        self._socket.close()

    def supports(self, api_key: int) -> bool:
        """Whether the broker and this client have a version of the API in common."""
        try:
            self._machine.version_for(api_key)
        except UnsupportedVersion:
            return False
        return True

    def version_for(self, api_key: int) -> int:
        """The version in which requests of an API go out; ClientError where there is none in common."""
        try:
            return self._machine.version_for(api_key)
        except UnsupportedVersion as error:
            raise ClientError(f"{self.address}: {error}") from error

    def call(self, request: m.Message, version: int | None = None, timeout_s: float | None = None) -> Any:
        """Sends a request and waits for its response; None for a Produce that asks for no acknowledgement.

        timeout_s is for this call alone, for what a broker answers late by intention. A connection that
        failed is of no use any more.
        """
        try:
            outgoing = self._machine.send(request, version)
        except UnsupportedVersion as error:
            raise ClientError(f"{self.address}: {error}") from error
        if timeout_s is None:
            return self._exchange(outgoing)
        usual_s = self._socket.gettimeout()
        self._socket.settimeout(timeout_s)
        answer = self._exchange(outgoing)
        self._socket.settimeout(usual_s)
        return answer

    def _negotiate(self) -> None:
        for _ in range(NEGOTIATION_ATTEMPTS):
            self._exchange(self._machine.negotiate())
            if self._machine.negotiated:
                return
        raise ClientError(f"{self.address} offers no ApiVersions version that this client has")

    def _exchange(self, outgoing: bytes) -> Any:
        try:
            self._socket.sendall(outgoing)
            while self._machine.in_flight:
                received = self._socket.recv(RECEIVE_BYTES)
                if not received:
                    raise ClientError(f"{self.address} closed the connection without an answer: see its log")
                for _, response in self._machine.receive(received):
                    return response
        except TimeoutError as error:
            raise ClientError(f"{self.address} gave no answer in {self._socket.gettimeout():g} s") from error
        except (OSError, ProtocolViolation) as error:
            raise ClientError(f"the connection to {self.address} failed: {error}") from error
        return None

"""One dialled connection to another broker: bytes to the sans-I/O client and back, one answer at a time.

Answers are read into one buffer, which grows to the largest of them and is used again for the next. So the
records of an answer, which are views of it, hold only until the next request: a follower has written them by
then, and they went from the socket to the file without another copy.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any, cast

from protocol.client_connection import ClientConnection
from protocol.errors import MalformedMessage, ProtocolViolation

FIRST_BYTES = 64 << 10
STEP_BYTES = 16 << 20  # an answer is believed to be so long before it has arrived
_SIZE = struct.Struct(">i")


class Link(asyncio.BufferedProtocol):
    """See the module. `failure` is why it is of no use any more."""

    def __init__(self, client: ClientConnection) -> None:
        self.client = client
        self.failure: Exception | None = None
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[Any] | None = None
        self._buffer = bytearray(FIRST_BYTES)
        self._view = memoryview(self._buffer)
        self._have = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._have :]

    def buffer_updated(self, nbytes: int) -> None:
        self._have += nbytes
        if self._have < _SIZE.size:
            return
        (size,) = _SIZE.unpack_from(self._buffer)
        end = _SIZE.size + size
        if self._have < end:
            if self._have == len(self._buffer) or end <= STEP_BYTES:
                self._grow(end)
            return
        try:
            if size < 0 or self._have > end:
                raise ProtocolViolation(f"{self._have} bytes for an answer of {size}")
            self._have = 0
            self._received(self._view[_SIZE.size : end])
        except (ProtocolViolation, MalformedMessage) as error:
            self.drop(error)

    def _grow(self, wanted: int) -> None:
        size = len(self._buffer)
        if wanted <= size:
            return
        grown = bytearray(wanted if wanted <= STEP_BYTES else min(wanted, max(2 * size, STEP_BYTES)))
        view = memoryview(grown)
        view[: self._have] = self._view[: self._have]
        self._buffer, self._view = grown, view

    def _received(self, payload: memoryview) -> None:
        message = self.client.response(payload)
        answer, self._answer = self._answer, None
        if answer is None:
            raise ProtocolViolation("an answer that nobody waits for")
        if not answer.done():
            answer.set_result(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionResetError("the other side closed the connection"))

    def drop(self, reason: Exception) -> None:
        """Close at once; who waits for an answer hears the reason."""
        self._fail(reason)
        self._transport.abort()

    def _fail(self, reason: Exception) -> None:
        self.failure = self.failure or reason
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(self.failure)

    async def send(self, frame: bytes) -> Any:
        """Send one request and await its answer."""
        if self.failure is not None:
            raise self.failure
        answer = self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        return await answer

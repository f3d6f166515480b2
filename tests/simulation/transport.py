"""asyncio's transport over a simulated socket, as strict as uvloop's.

`abort` drops what was not sent and closes, which the peer sees as an end, or as a reset where bytes that it
sent were not read. After it, and after the peer's reset, writes are dropped until `connection_lost` has been
called, and refused with RuntimeError from then on; so are pauses of reading from the beginning.
"""

from __future__ import annotations

import asyncio
from typing import Any

from tests.simulation.loop import HostLoop
from tests.simulation.wire import Socket

READ_BYTES = 256 << 10
HIGH_WATER_BYTES = 64 << 10


class SimTransport(asyncio.Transport):
    """See the module."""

    def __init__(self, loop: HostLoop, socket: Socket, protocol: asyncio.BaseProtocol) -> None:
        self._loop, self._socket, self._protocol = loop, socket, protocol
        self._buffer = bytearray()
        self._high = self._low = 0
        self.set_write_buffer_limits()
        self._reading = False
        self._read_armed = self._write_armed = False
        self._closing = self._lost = self._finished = False
        self._stuck = False  # the protocol was told to pause writing
        socket.endpoint = self

    def begin(self) -> None:
        """The connection is made: tell the protocol, then read, unless it has paused that."""
        self._reading = True
        self._protocol.connection_made(self)
        if self._socket.reset:
            self.was_reset()
        else:
            self.arrived()

    # -- from the kernel, between steps of the loop

    def arrived(self) -> None:
        socket = self._socket
        if self._reading and not self._read_armed and not self._closing and (socket.chunks or socket.ended):
            self._read_armed = True
            self._loop.call_soon(self._read)

    def room(self) -> None:
        if self._buffer and not self._write_armed:
            self._write_armed = True
            self._loop.call_soon(self._write_more)

    def was_reset(self) -> None:
        self._loop.call_soon(self._force_close, ConnectionResetError(104, "Connection reset by peer"))

    # -- reading

    def _read(self) -> None:
        self._read_armed = False
        socket, protocol = self._socket, self._protocol
        if self._closing or not self._reading or socket.reset:
            return
        try:
            if socket.chunks:
                if isinstance(protocol, asyncio.BufferedProtocol):
                    buffer = protocol.get_buffer(-1)
                    data = socket.take(len(buffer))
                    buffer[: len(data)] = data
                    protocol.buffer_updated(len(data))
                else:
                    protocol.data_received(socket.take(READ_BYTES))
            elif socket.ended:
                self._reading = False
                if not protocol.eof_received():
                    self.close()
                return
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._loop.call_exception_handler(
                {"message": "a protocol failed on what it received", "exception": error}
            )
            self._force_close(error if isinstance(error, Exception) else None)
            return
        self.arrived()

    def pause_reading(self) -> None:
        self._check_open()
        self._reading = False

    def resume_reading(self) -> None:
        self._check_open()
        if not self._reading:
            self._reading = True
            self.arrived()

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def _check_open(self) -> None:
        if self._finished or self._lost:
            raise RuntimeError("unable to perform operation on a transport; the handler is closed")

    # -- writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._finished:
            raise RuntimeError("unable to perform operation on a transport; the handler is closed")
        if self._lost or not data or self._loop.dead:
            return
        if self._closing:
            return
        data = bytes(data)
        if not self._buffer:
            taken = self._push(memoryview(data))
            if taken == len(data):
                return
            data = data[taken:]
        self._buffer += data
        if len(self._buffer) > self._high and not self._stuck:
            self._stuck = True
            self._protocol.pause_writing()

    def _push(self, data: memoryview) -> int:
        count = min(len(data), self._socket.out.room_bytes)
        if count and not self._socket.reset:
            self._socket.out.send(bytes(data[:count]))
        return count

    def _write_more(self) -> None:
        self._write_armed = False
        if self._lost or not self._buffer:
            return
        taken = self._push(memoryview(self._buffer))
        if taken:
            self._buffer = self._buffer[taken:]
        if self._stuck and len(self._buffer) <= self._low:
            self._stuck = False
            self._protocol.resume_writing()
        if self._closing and not self._buffer and not self._lost:
            self._lost = True
            self._loop.call_soon(self._tell_lost, None)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def can_write_eof(self) -> bool:
        return False

    # -- the end

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._reading = False
            if not self._buffer:
                self._lost = True
                self._loop.call_soon(self._tell_lost, None)

    def abort(self) -> None:
        self._force_close(None)

    def _force_close(self, error: Exception | None) -> None:
        if not self._lost:
            self._closing = self._lost = True
            self._reading = False
            self._buffer.clear()
            self._socket.close()
            self._loop.call_soon(self._tell_lost, error)

    def _tell_lost(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._finished = True
            self._socket.close()
            self._socket.endpoint = None

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """No "socket" and no "sslcontext": who asks for a descriptor learns that there is none."""
        socket = self._socket
        if name == "peername":
            return (socket.peer.kernel.address, socket.peer.port)
        if name == "sockname":
            return (socket.kernel.address, socket.port)
        return default

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

"""Bare servers that do the least a broker could do: the floors under the loads.

    python -m bench.floors echo                  answers every read with the same bytes, on uvloop
    python -m bench.floors write FILE            reads frames, writes them to the file, answers 60 bytes each
    python -m bench.floors sendfile FILE SIZE    answers each read with SIZE bytes of the file by sendfile

Each prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import sys
import threading
from types import TracebackType
from typing import Self, cast

SEND_BUFFER_BYTES = 102_400  # Kafka's default, which both brokers use
READ_BYTES = 1 << 20
WRITE_ANSWER = struct.pack(">i", 56) + bytes(56)
FILE_LIMIT_BYTES = 1 << 30
_LENGTH = struct.Struct(">i")


class Floor:
    """A floor in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.floors", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.address = ("127.0.0.1", int(self._process.stdout.readline()))
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


class Echo(asyncio.BufferedProtocol):
    """Answers what it reads."""

    def __init__(self) -> None:
        self._buffer = bytearray(64 << 10)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(0)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._transport.write(bytes(memoryview(self._buffer)[:nbytes]))


def echo(listening: socket.socket) -> None:
    import uvloop

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        await loop.create_server(Echo, sock=listening, backlog=1024)
        await asyncio.Event().wait()

    uvloop.run(serve())


def write(connection: socket.socket, path: str) -> None:
    """Frames into the file, whatever is in them."""
    buffer = memoryview(bytearray(READ_BYTES))
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    left, head, position = 0, b"", 0
    while n := connection.recv_into(buffer):
        os.pwrite(fd, buffer[:n], position)
        position = position + n if position < FILE_LIMIT_BYTES else 0
        at = 0
        while at < n:
            if left:
                step = min(left, n - at)
                left, at = left - step, at + step
                if not left:
                    connection.sendall(WRITE_ANSWER)
                continue
            piece = bytes(buffer[at : min(n, at + 4 - len(head))])
            head, at = head + piece, at + len(piece)
            if len(head) == 4:
                left, head = _LENGTH.unpack(head)[0], b""


def sendfile(connection: socket.socket, path: str, size: int) -> None:
    """The file from front to back, a slice for each request."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    fd, head, position = os.open(path, os.O_RDONLY), _LENGTH.pack(size), 0
    end = os.fstat(fd).st_size - size
    while connection.recv(READ_BYTES):
        connection.sendall(head)
        done = 0
        while done < size:
            done += os.sendfile(connection.fileno(), fd, position + done, size - done)
        position = position + size if position + size <= end else 0


def main(kind: str, *arguments: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listening.getsockname()[1], flush=True)
    if kind == "echo":
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        echo(listening)
        return

    def accept() -> None:
        number = 0
        while True:
            connection, _ = listening.accept()
            number += 1
            if kind == "write":
                job = threading.Thread(
                    target=write, args=(connection, f"{arguments[0]}-{number}"), daemon=True
                )
            else:
                args = (connection, arguments[0], int(arguments[1]))
                job = threading.Thread(target=sendfile, args=args, daemon=True)
            job.start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

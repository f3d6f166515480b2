"""Both loops: what a runtime test runs on."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

LOOPS = [
    pytest.param(uvloop.new_event_loop, id="uvloop"),
    pytest.param(asyncio.new_event_loop, id="stock"),
]


def run_on(factory, coroutine):
    """Run to the end on a new loop of that kind; nothing may take longer than a minute."""
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(asyncio.wait_for(coroutine, 60))


async def read_exactly(connection: socket.socket, count: int, pause=None) -> bytes:
    """Read from a non-blocking client socket; `pause` is awaited between reads."""
    loop, pieces, have = asyncio.get_running_loop(), [], 0
    while have < count:
        piece = await loop.sock_recv(connection, min(1 << 16, count - have))
        if not piece:
            break
        pieces.append(piece)
        have += len(piece)
        if pause is not None:
            await pause()
    return b"".join(pieces)


async def connect(address) -> socket.socket:
    """A plain client socket."""
    client = socket.socket()
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, address)
    return client


async def until(condition) -> None:
    """Let the loop turn until the condition holds."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never held")

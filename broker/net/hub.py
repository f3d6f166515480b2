"""What all connections of a broker share: the loop, the turn, the receive buffer, limits and counters.

One object instead of a dozen attributes on each connection keeps an idle connection small. The receive
buffer is one for all connections, because nothing runs between `get_buffer` and `buffer_updated`: a
connection owns memory only for a frame that is unfinished or may not be answered yet.

`generation` counts everything that can make a remembered request shape wrong (leadership, topics, configs,
permissions): a connection that sees another number drops its memo.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.net.turn import Turn

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from broker.net.dispatch import Dispatcher
    from broker.net.limits import ConnectionLimits
    from runtime import Env
    from runtime.receive import FrameBudget

log = logging.getLogger("ottla.network")

RECEIVE_BYTES = 64 << 10  # read at once into the shared buffer; frames above get a buffer of their own


class Hub:
    """Shared by the connections of one broker."""

    __slots__ = (
        "buf", "connections", "dispatcher", "env", "frames", "generation", "limits", "loop", "max_frame_bytes",
        "tick", "turn", "view", "whole",
    )  # fmt: skip

    def __init__(
        self, env: Env, frames: FrameBudget, limits: ConnectionLimits, max_frame_bytes: int
    ) -> None:
        self.env = env
        self.loop: asyncio.AbstractEventLoop = env.loop
        self.turn = Turn(env.loop, env.clock)
        self.frames = frames
        self.limits = limits
        self.max_frame_bytes = max_frame_bytes
        self.generation = 0
        self.tick = 0  # raised by the idle sweep; connections note the tick they last heard something in
        self.connections: dict[Connection, None] = {}
        self.dispatcher: Dispatcher
        # Twice what is read at once: an unfinished frame of the last read is put in front of the new bytes.
        self.buf = bytearray(2 * RECEIVE_BYTES)
        self.whole = memoryview(self.buf)
        self.view = self.whole[:RECEIVE_BYTES]

    def forget_shapes(self) -> None:
        """Something changed that remembered request shapes may depend on."""
        self.generation += 1

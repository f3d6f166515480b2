"""What all connections of a broker share: the loop, the turn, the receive buffer, limits and counters.

One object instead of a dozen attributes on each connection keeps an idle connection small.

`generation` counts everything that can make a remembered request shape wrong (leadership, topics, configs,
permissions): a connection that sees another number drops its memo.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.net.costly import CostlyTurns
from broker.net.turn import Turn
from broker.net.unread import UnreadAnswers
from replication.deadline_buckets import DeadlineBuckets
from runtime.receive import ReceivePool

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from broker.net.dispatch import Dispatcher
    from broker.net.limits import ConnectionLimits
    from runtime.system import Env

log = logging.getLogger("ottla.network")

# For all unfinished requests together. The oldest may take more while it is copied to a larger buffer; with
# that, and what the allocator adds, it stays below 256 MiB in all.
UNFINISHED_BYTES = 160 << 20
SHAPES_IN_ALL_MAX = 64_000  # of about 1.2 KB; beyond it a connection that has any begins anew


class Hub:
    """Shared by the connections of one broker."""

    __slots__ = (
        "connections",
        "costly_turns",
        "deadlines",
        "departures",
        "dispatcher",
        "env",
        "generation",
        "limits",
        "loop",
        "max_frame_bytes",
        "receiving",
        "serving",
        "shapes",
        "shared",
        "shared_view",
        "tick",
        "turn",
        "unread",
        "worked",
    )

    def __init__(self, env: Env, limits: ConnectionLimits, max_frame_bytes: int) -> None:
        self.env = env
        self.loop: asyncio.AbstractEventLoop = env.loop
        self.receiving = ReceivePool(env.loop, UNFINISHED_BYTES)
        self.shared, self.shared_view = self.receiving.shared, self.receiving.shared_view
        self.turn = Turn(env.loop, env.clock, self.receiving.recycle)
        self.worked = env.clock.worked
        self.costly_turns = CostlyTurns(env.loop, env.clock)
        self.unread = UnreadAnswers()
        self.deadlines = DeadlineBuckets(env.loop)
        self.limits = limits
        self.max_frame_bytes = max_frame_bytes
        self.generation = 0
        self.shapes = 0  # remembered by all connections
        self.serving = False  # frames of a connection lie in the shared buffer: no other may use it
        self.tick = 0  # raised by the idle sweep; connections note the tick they last heard something in
        self.connections: dict[Connection, None] = {}
        self.departures: list[Callable[[object], None]] = []  # hear of each connection that is gone
        self.dispatcher: Dispatcher

    def forget_shapes(self) -> None:
        """Something changed that remembered request shapes may depend on."""
        self.generation += 1

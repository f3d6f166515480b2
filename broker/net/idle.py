"""Closes connections that have been silent for `connections.max.idle.ms`, at next to no cost for the others.

Instead of a timer for each connection there is one sweep: a tick counts up, a connection notes the tick in
which it last received something (one attribute), and the sweep closes those that are too many ticks behind. A
silent connection lives at most one tick longer than configured. Waiting ones are not exempt, as in Kafka.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.net.hub import log

if TYPE_CHECKING:
    from broker.net.hub import Hub

TICKS = 20  # in the idle time
TICK_SECONDS_MIN, TICK_SECONDS_MAX = 0.05, 30.0


class IdleSweep:
    """One for a broker. `max_idle_ms` negative or zero: connections may be silent for ever."""

    __slots__ = ("_handle", "_hub", "_max_idle_ms", "_seconds", "_ticks")

    def __init__(self, hub: Hub, max_idle_ms: int) -> None:
        self._hub = hub
        self._max_idle_ms = max_idle_ms
        idle_seconds = max_idle_ms / 1000 if max_idle_ms > 0 else TICK_SECONDS_MAX * TICKS
        self._seconds = min(max(idle_seconds / TICKS, TICK_SECONDS_MIN), TICK_SECONDS_MAX)
        self._ticks = max(1, round(idle_seconds / self._seconds))
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Sweep from now on until `stop`."""
        self._handle = self._hub.loop.call_later(self._seconds, self.sweep)

    def stop(self) -> None:
        """No further sweep."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def sweep(self) -> None:
        """One tick: close who was silent for too long, and let the quiet ones give up memory."""
        hub = self._hub
        hub.tick += 1
        oldest = hub.tick - self._ticks
        for connection in list(hub.connections):
            if connection.seen == hub.tick - 3:
                connection.forget_shapes()
            if connection.closed:
                connection.transport.abort()  # it was given a tick to take its last answers
            elif self._max_idle_ms > 0 and connection.seen < oldest:
                log.info(
                    "Closing the connection from %s: silent for connections.max.idle.ms", connection.peer
                )
                connection.shut()
        self.start()

"""How long the event loop was held up.

A timer that ticks every 25 ms sees a stall as its own lateness, so anything longer than the interval
shows with an error of at most the interval. It costs about 40 wake-ups a second.
"""

from __future__ import annotations

import asyncio

INTERVAL_SECONDS = 0.025


class StallWatch:
    """Remembers the longest stall since `take`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._longest_seconds = 0.0
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._due = self._loop.time() + INTERVAL_SECONDS
        self._handle = self._loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def take(self) -> float:
        """The longest stall in seconds since the last call, and start over."""
        longest, self._longest_seconds = self._longest_seconds, 0.0
        return longest

    def _tick(self) -> None:
        late = self._loop.time() - self._due
        if late > self._longest_seconds:
            self._longest_seconds = late
        self.start()

"""How long the event loop was held up.

A timer that ticks every 25 ms sees a stall as its own lateness, so anything longer than the interval
shows with an error of at most the interval. It costs about 40 wake-ups a second. The processor time of the
loop's thread tells what the loop did meanwhile: worked, or waited for the kernel (a write that the file
system holds up while it brings older pages to the disk) or for a processor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

INTERVAL_SECONDS = 0.025


class Stall(NamedTuple):
    """How late a tick was, and how long the loop's thread had worked since the tick before, in seconds."""

    seconds: float = 0.0
    worked: float = 0.0


class StallWatch:
    """Remembers the longest stall since `take`. `worked` tells the processor time of the loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, worked: Callable[[], float]) -> None:
        self._loop = loop
        self._worked = worked
        self._longest = Stall()
        self._due = self._worked_before = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """On the loop's thread."""
        self._worked_before = self._worked()
        self._due = self._loop.time() + INTERVAL_SECONDS
        self._handle = self._loop.call_at(self._due, self._tick)

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def take(self) -> Stall:
        """The longest stall since the last call, and start over."""
        longest, self._longest = self._longest, Stall()
        return longest

    def _tick(self) -> None:
        late = self._loop.time() - self._due
        if late > self._longest.seconds:
            self._longest = Stall(late, self._worked() - self._worked_before)
        self.start()

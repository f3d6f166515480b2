"""Where the broker's time comes from.

Three times are kept apart: the wall clock, which stamps records and may jump, the monotonic clock, which
measures waits and never goes back, and the processor time of the calling thread, which measures work and
does not count while the machine does something else. A clock call costs about as much as parsing a small
field, so hot code reads the clock once for each turn of the loop and passes `now` on.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Wall and monotonic time; in a simulation both are virtual and may differ from host to host."""

    def now_ms(self) -> int:
        """Wall clock in milliseconds since the epoch; may go back when the machine's clock is set."""

    def monotonic(self) -> float:
        """Seconds on the event loop's clock, the one that `loop.call_at` takes."""

    def worked(self) -> float:
        """Seconds for which the calling thread has had a processor. A system call: 0.3 us."""


class SystemClock:
    """The machine's wall clock, the monotonic time of the event loop, and the thread's processor time."""

    __slots__ = ("monotonic", "worked")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.monotonic = loop.time
        self.worked = time.thread_time

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

"""The world of a simulation: one virtual time, one queue for everything that comes, one seed.

Everything that takes time is a call in this queue: steps of the hosts' event loops, packets, the ends of
threads' work, faults. Calls of one moment come in the order in which they were made, so a seed repeats a run.
Time is counted in whole microseconds, because sums of floats depend on their order.

Chance is drawn by name (`chance("network")`), so that one more draw in one part shifts nothing in another.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from tests.simulation.trace import Trace

START_MS = 1_700_000_000_000
SECOND_US = 1_000_000
MS_US = 1_000


class SimulationFailed(AssertionError):
    """Something happened that must not; the text says what."""


class Event:
    """A call to come."""

    __slots__ = ("args", "callback")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None


class World:
    """See the module. `failures` ends the run at the next event."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_us = 0
        self.trace = Trace()
        self.failures: list[str] = []
        self.events = 0
        self._queue: list[tuple[int, int, Event]] = []
        self._made = 0
        self._stopped = False

    def chance(self, name: str) -> random.Random:
        """The draws of one part; the same name gives the same ones."""
        return random.Random(f"{self.seed}/{name}")

    def at(self, when_us: int, callback: Callable[..., object], *args: Any) -> Event:
        event = Event(callback, args)
        self._made += 1
        heapq.heappush(self._queue, (when_us, self._made, event))
        return event

    def after(self, delay_us: int, callback: Callable[..., object], *args: Any) -> Event:
        event = Event(callback, args)
        self._made += 1
        heapq.heappush(self._queue, (self.now_us + delay_us, self._made, event))
        return event

    def note(self, place: str, event: str) -> None:
        self.trace.note(self.now_us, place, event)

    def fail(self, text: str) -> None:
        self.failures.append(f"at {self.now_us / SECOND_US:.6f} s: {text}")

    def stop(self) -> None:
        """Let `run` return."""
        self._stopped = True

    def run(self, until_us: int) -> bool:
        """Perform what is due until then, or until somebody says stop (True). Raises SimulationFailed."""
        queue, pop, failures = self._queue, heapq.heappop, self.failures
        self._stopped = False
        while queue and queue[0][0] <= until_us:
            when_us, _, event = pop(queue)
            callback = event.callback
            if callback is None:
                continue
            if when_us > self.now_us:
                self.now_us = when_us
            self.events += 1
            callback(*event.args)
            if failures:
                raise SimulationFailed("\n".join(failures))
            if self._stopped:
                return True
        self.now_us = max(self.now_us, until_us)
        return False

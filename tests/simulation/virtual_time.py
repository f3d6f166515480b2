"""Virtual time: one queue of calls for everything that happens, and processes that wait in it.

Nothing runs beside it, so a seed repeats a run exactly. `Scheduler` is a Clock and a Timer of the
coordinators' ports; `spawn` runs a coroutine whose waits are `Pause` and `Answer`, or `asyncio.sleep(0)`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Coroutine, Generator
from typing import Any

START_MS = 1_700_000_000_000


class Call:
    """One call to come; see `ports.Cancellable`."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Scheduler:
    """Calls in the order of their time, then of their making."""

    def __init__(self) -> None:
        self._now_ms = START_MS
        self._made = 0
        self._queue: list[tuple[int, int, Call]] = []
        self.performed = 0

    def now_ms(self) -> int:
        return self._now_ms

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Call:
        call = Call(callback)
        self._made += 1
        heapq.heappush(self._queue, (self._now_ms + max(delay_ms, 0), self._made, call))
        return call

    def run_for(self, duration_ms: int) -> None:
        """Perform everything that is due until `duration_ms` from now."""
        until_ms = self._now_ms + duration_ms
        queue = self._queue
        while queue and queue[0][0] <= until_ms:
            self._now_ms, _, call = heapq.heappop(queue)
            if call.callback is not None:
                self.performed += 1
                call.callback()
        self._now_ms = until_ms

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine from now on."""
        self.add(0, lambda: self._step(coroutine, None))

    def _step(self, coroutine: Coroutine[Any, Any, None], value: Any) -> None:
        try:
            waits_for = coroutine.send(value)
        except StopIteration:
            return
        if waits_for is None:
            self.add(0, lambda: self._step(coroutine, None))
        elif isinstance(waits_for, Pause):
            self.add(waits_for.duration_ms, lambda: self._step(coroutine, None))
        else:
            waits_for.then(lambda answer: self._step(coroutine, answer))


class Pause:
    """`await Pause(ms)` lets virtual time pass."""

    __slots__ = ("duration_ms",)

    def __init__(self, duration_ms: int) -> None:
        self.duration_ms = duration_ms

    def __await__(self) -> Generator[Any, Any, None]:
        yield self


class Answer:
    """Something that is told later; one process may await it."""

    __slots__ = ("_listener", "_value", "told")

    def __init__(self) -> None:
        self.told = False
        self._value: Any = None
        self._listener: Callable[[Any], None] | None = None

    def set(self, value: Any) -> None:
        assert not self.told, "told twice"
        self.told, self._value = True, value
        if self._listener is not None:
            self._listener(value)

    def set_first(self, value: Any) -> None:
        """Tell it, unless something else came first."""
        if not self.told:
            self.set(value)

    def then(self, listener: Callable[[Any], None]) -> None:
        if self.told:
            listener(self._value)
        else:
            self._listener = listener

    def __await__(self) -> Generator[Any, Any, Any]:
        value = yield self
        return value

"""Requests that wait for something to happen, or for their time to be over (Kafka's DelayedOperation).

An operation completes exactly once: by a successful try, by `force_complete`, or by its time-out; whichever
comes first cancels the others. What it waits for is the business of its kind: `delayed_produce`,
`delayed_delete`. Everything runs on the event loop, so an operation that is completed from within a try is
seen as completed at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol


class Cancellable(Protocol):
    """A pending call of a timer."""

    def cancel(self) -> object: ...


class Timer(Protocol):
    """runtime's LoopTimer, or a wheel that a test advances."""

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Cancellable: ...


class DelayedOperation(ABC):
    """Base of everything that waits here. `timeout_ms` counts from `_wait`."""

    __slots__ = ("_on_end", "_timer_entry", "completed", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.completed = False
        self._timer_entry: Cancellable | None = None
        self._on_end: Callable[[], None] | None = None

    @abstractmethod
    def try_complete(self) -> bool:
        """If the condition holds, return what `force_complete` returns; else False."""

    @abstractmethod
    def on_complete(self) -> None:
        """The one end: answer the request. Called once, also on time-out."""

    def force_complete(self) -> bool:
        """Complete now; False if it was completed before."""
        if self.completed:
            return False
        self.completed = True
        self._stop_waiting()
        self.on_complete()
        return True

    def _wait(self, timer: Timer, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self._timer_entry = timer.add(self.timeout_ms, self._expire)

    def _stop_waiting(self) -> None:
        if self._timer_entry is not None:
            self._timer_entry.cancel()
            self._timer_entry = None
        if self._on_end is not None:
            on_end, self._on_end = self._on_end, None
            on_end()

    def _expire(self) -> None:
        self._timer_entry = None
        self.force_complete()

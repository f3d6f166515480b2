"""Timers with keys: at most one is set under each key, and setting it again replaces it.

One `KeyedTimers` belongs to one shard, so that unloading a partition takes back everything it had set.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from coordinator.ports import Cancellable, Timer


class KeyedTimers:
    """The pending timers of one owner over a shared wheel."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._pending: dict[Hashable, Cancellable] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._pending

    def set(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None:
        """Have `callback` called in `delay_ms`; a timer that stands under `key` is taken back."""
        self.cancel(key)

        def ring() -> None:
            self._pending.pop(key, None)
            callback()

        self._pending[key] = self._timer.add(delay_ms, ring)

    def cancel(self, key: Hashable) -> None:
        """Take a timer back; nothing happens when none is set."""
        entry = self._pending.pop(key, None)
        if entry is not None:
            entry.cancel()

    def cancel_all(self) -> None:
        """Take all back, oldest first."""
        for key in list(self._pending):
            self.cancel(key)

"""Requests that wait for something to happen to a key, or for their time to be over (Kafka's
DelayedOperationPurgatory).

An operation is tried, registered under all its keys, and tried again, so that nothing that happens in between
is lost. Whoever changes a key calls `check_and_complete(key)`. Each operation completes exactly once: by a
successful try, by `force_complete`, or by its time-out; the one that comes first cancels the others.

A completed operation may still stand under keys that nobody has touched since. It is dropped when its key is
checked, or when more than `purge_interval` such entries have gathered.

Everything runs on the event loop, so an operation that is completed from within a try is seen as completed at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

PURGE_INTERVAL = 1000


class Cancellable(Protocol):
    """A pending call of a timer."""

    def cancel(self) -> object: ...


class Timer(Protocol):
    """runtime's LoopTimer, or a wheel that a test advances."""

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Cancellable: ...


class DelayedOperation:
    """Base of everything that waits here. `timeout_ms` counts from `try_complete_else_watch`."""

    __slots__ = ("_on_end", "_timer_entry", "completed", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.completed = False
        self._timer_entry: Cancellable | None = None
        self._on_end: Callable[[], None] | None = None

    def try_complete(self) -> bool:
        """If the condition holds, return what `force_complete` returns; else False."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """The one end: answer the request. Called once, also on time-out."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """The time was over first. Called after `on_complete`."""

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
        if self.force_complete():
            self.on_expiration()


class Purgatory:
    """Operations of one kind, by the keys that they wait for."""

    def __init__(self, timer: Timer, purge_interval: int = PURGE_INTERVAL) -> None:
        self._timer = timer
        self._purge_interval = purge_interval
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}
        self._since_purge = 0
        self.delayed = 0

    @property
    def watched(self) -> int:
        """Entries under all keys: an operation counts once for each of its keys, a completed one until
        dropped.
        """
        return sum(len(operations) for operations in self._watchers.values())

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Sequence[Hashable]) -> bool:
        """Complete the operation now, or have it wait for the keys. True if it was completed by this call."""
        if not keys:
            raise ValueError("an operation must wait for at least one key")
        if operation.try_complete():
            return True
        for key in keys:
            if operation.completed:
                return False
            self._watchers.setdefault(key, {})[operation] = None
        self._since_purge += len(keys)
        if operation.try_complete():
            return True
        if not operation.completed:
            self.delayed += 1
            operation._wait(self._timer, self._ended)
        if self._since_purge - self.delayed > self._purge_interval:
            self.purge()
        return False

    def check_and_complete(self, key: Hashable) -> int:
        """Something happened to `key`: try its operations. How many were completed by this call."""
        operations = self._watchers.get(key)
        if operations is None:
            return 0
        completed = 0
        for operation in list(operations):
            if operation.completed:
                operations.pop(operation, None)
            elif operation.try_complete():
                completed += 1
                operations.pop(operation, None)
        self._drop_if_empty(key, operations)
        return completed

    def purge(self) -> int:
        """Drop the entries of completed operations under all keys; how many."""
        purged = 0
        for key in list(self._watchers):
            operations = self._watchers[key]
            done = [operation for operation in operations if operation.completed]
            for operation in done:
                del operations[operation]
            purged += len(done)
            self._drop_if_empty(key, operations)
        self._since_purge = self.delayed
        return purged

    def _drop_if_empty(self, key: Hashable, operations: dict[DelayedOperation, None]) -> None:
        if not operations and self._watchers.get(key) is operations:
            del self._watchers[key]

    def _ended(self) -> None:
        self.delayed -= 1

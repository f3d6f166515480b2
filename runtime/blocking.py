"""Work that waits for a disk or keeps the interpreter's lock free, off the event loop.

fsync, cold reads, sqlite and compression of big buffers run here on a few threads. Work that holds the
interpreter's lock for long (recovery, cleaning) belongs into `runtime.workers`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")
_MAX_THREADS = 8
_MAX_WAITING = 4096


class BlockingBusy(RuntimeError):
    """More work waits for a thread than the bound allows; nothing was started."""


class Blocking(Protocol):
    """Runs functions elsewhere; a simulation runs them inline at a later step."""

    def submit(self, function: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        """Start the function; the future ends on the loop. Raises BlockingBusy beyond the bound."""

    def close(self) -> None:
        """Wait for what has started, drop what has not."""


class ThreadBlocking:
    """A small pool of threads, started with the first use."""

    def __init__(self, loop: asyncio.AbstractEventLoop, max_waiting: int = _MAX_WAITING) -> None:
        self._loop = loop
        self._max_waiting = max_waiting
        self._waiting = 0
        threads = min(_MAX_THREADS, (os.cpu_count() or 1) + 2)
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="blocking")

    def submit(self, function: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        if self._waiting >= self._max_waiting:
            raise BlockingBusy(f"{self._waiting} calls wait for a thread")
        self._waiting += 1
        future = self._loop.run_in_executor(self._executor, partial(function, *args))
        future.add_done_callback(self._done)
        return future

    def _done(self, _: asyncio.Future[Any]) -> None:
        self._waiting -= 1

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

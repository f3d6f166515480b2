"""Work that waits for a disk or keeps the interpreter's lock free, off the event loop.

fsync, cold reads, sqlite and compression of big buffers run here on a few threads. Work that holds the
interpreter's lock for long (recovery, cleaning) belongs into `runtime.workers`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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

    async def settled(self) -> None:
        """Wait for all that was submitted, also for calls whose callers were cancelled: those go on."""

    def close(self) -> None:
        """Wait for what has started, drop what has not."""


class ThreadBlocking:
    """A small pool of threads, started with the first use."""

    def __init__(self, loop: asyncio.AbstractEventLoop, max_waiting: int = _MAX_WAITING) -> None:
        self._loop = loop
        self._max_waiting = max_waiting
        self._unfinished: dict[Future[Any], None] = {}
        threads = min(_MAX_THREADS, (os.cpu_count() or 1) + 2)
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="blocking")

    def submit(self, function: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        if len(self._unfinished) >= self._max_waiting:
            raise BlockingBusy(f"{len(self._unfinished)} calls wait for a thread")
        work = self._executor.submit(function, *args)
        self._unfinished[work] = None
        work.add_done_callback(self._ended)
        return asyncio.wrap_future(work, loop=self._loop)

    def _ended(self, work: Future[Any]) -> None:
        """Called on whichever thread ended the work; taking a key out of a dict is one step."""
        self._unfinished.pop(work, None)

    async def settled(self) -> None:
        while unfinished := [asyncio.wrap_future(work, loop=self._loop) for work in list(self._unfinished)]:
            await asyncio.gather(*unfinished, return_exceptions=True)

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)

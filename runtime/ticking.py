"""A thread for a thing that belongs to one thread: it does what it is given, in order, and ticks meanwhile.

The tick comes about every `interval_s`, between two pieces of work, and at once after a long one. What it
raises is logged, and ticks go on; work raises to whoever gave it. The thread is a daemon, so a
process can end while a disk keeps it waiting.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

Work = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class TickingThread:
    """See the module. Given work and futures are of the loop; `tick` runs on the thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, name: str, interval_s: float, tick: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._interval_s = interval_s
        self._tick = tick
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        """Do it after all that was given before; the future ends on the loop."""
        outcome: asyncio.Future[_T] = self._loop.create_future()
        self._work.put((work, outcome))
        return outcome

    def post(self, function: Callable[..., None], *args: Any) -> None:
        """From the thread to the loop; nothing happens when that is closed."""
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            _log.debug("The event loop is closed")

    def stop(self) -> None:
        """No more ticks; what was given before is still done. Does not wait."""
        self._work.put(None)

    def _run(self) -> None:
        next_tick = time.monotonic() + self._interval_s
        while True:
            try:
                given = self._work.get(timeout=max(0.0, next_tick - time.monotonic()))
            except queue.Empty:
                self._tick_once()
                next_tick = time.monotonic() + self._interval_s
                continue
            if given is None:
                return
            self._do(*given)
            if time.monotonic() >= next_tick:
                self._tick_once()
                next_tick = time.monotonic() + self._interval_s

    def _tick_once(self) -> None:
        try:
            self._tick()
        except Exception:
            _log.exception("The tick of %s failed", threading.current_thread().name)

    def _do(self, work: Callable[[], Any], outcome: asyncio.Future[Any]) -> None:
        try:
            value = work()
        except BaseException as error:
            self.post(_fail, outcome, error)
        else:
            self.post(_succeed, outcome, value)


def _succeed(outcome: asyncio.Future[Any], value: Any) -> None:
    if not outcome.done():
        outcome.set_result(value)


def _fail(outcome: asyncio.Future[Any], error: BaseException) -> None:
    if not outcome.done():
        outcome.set_exception(error)

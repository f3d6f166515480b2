"""The threads of a simulated process: jobs run at drawn moments of virtual time, one at a time on each.

A job is done in one go at a moment between its begin and its end, so others see none or all of it; the loop
hears of it later. A paused process' threads stand still, a dead one's are gone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from runtime.blocking import BlockingBusy
from tests.simulation.loop import HostLoop
from tests.simulation.power import PowerCut
from tests.simulation.world import MS_US, World

_T = TypeVar("_T")
THREADS = 4
MAX_WAITING = 4096
JOB_US = (20, 3 * MS_US)
LONG_JOB_US = (10 * MS_US, 120 * MS_US)
LONG_JOBS = 0.02

Job = tuple[Callable[..., Any], tuple[Any, ...], "asyncio.Future[Any]"]


class SimBlocking:
    """See the module and `runtime.blocking.Blocking`. `slowness` stretches what jobs take."""

    def __init__(self, world: World, loop: HostLoop) -> None:
        self.slowness = 1
        self._world, self._loop = world, loop
        self._chance = world.chance(f"threads of {loop.name}")
        self._waiting: deque[Job] = deque()
        self._running = 0
        self._unfinished = 0
        self._settling: list[asyncio.Future[None]] = []
        self._closed = False

    def submit(self, function: Callable[..., _T], *args: Any) -> asyncio.Future[_T]:
        assert not self._closed, "work for threads that are gone"
        if self._unfinished >= MAX_WAITING:
            raise BlockingBusy(f"{self._unfinished} calls wait for a thread")
        outcome: asyncio.Future[_T] = self._loop.create_future()
        self._unfinished += 1
        self._waiting.append((function, args, outcome))
        self._start()
        return outcome

    def _start(self) -> None:
        while self._waiting and self._running < THREADS:
            self._running += 1
            self._world.after(self._takes_us(), self._perform, self._waiting.popleft())

    def _takes_us(self) -> int:
        chance = self._chance
        bounds = LONG_JOB_US if chance.random() < LONG_JOBS else JOB_US
        return chance.randint(*bounds) * self.slowness

    def _perform(self, job: Job) -> None:
        loop = self._loop
        if loop.dead:
            return
        if loop.paused:
            self._world.after(self._takes_us(), self._perform, job)
            return
        function, args, outcome = job
        try:
            value, error = function(*args), None
        except PowerCut:
            return
        except Exception as raised:
            value, error = None, raised
        if not loop.dead:
            name = getattr(function, "__qualname__", type(function).__name__)
            self._world.note(loop.name, f"thread {name} {type(error).__name__ if error else 'done'}")
            self._world.after(self._chance.randint(1, MS_US), self._ended, outcome, value, error)

    def _ended(self, outcome: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
        self._running -= 1
        self._unfinished -= 1
        self._loop.call_soon(_tell, outcome, value, error)
        if not self._unfinished:
            for waiter in self._settling:
                self._loop.call_soon(_tell, waiter, None, None)
            self._settling.clear()
        self._start()

    async def settled(self) -> None:
        while self._unfinished:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._settling.append(waiter)
            await waiter

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()


def _tell(outcome: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if not outcome.done():
        if error is None:
            outcome.set_result(value)
        else:
            outcome.set_exception(error)

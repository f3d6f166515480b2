"""The event loop of one process of a simulated host: asyncio's interface on the world's queue.

Each process has a loop of its own, so that one can be paused (SIGSTOP) or ended (SIGKILL) between two of its
steps while the others go on. A step runs what was ready when it began, first come first served as asyncio
promises, and the next one comes a drawn time later: a loop that never rests lets virtual time pass.

It knows what uvloop and the stock loop both have and the broker uses: calls, timers, tasks, futures. Sockets,
threads and names come through the Env; what asks the loop for them fails.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from tests.simulation.world import SECOND_US, World

STEP_US = (2, 40)  # between two steps of a busy loop
SLOW_STEP_US = (1_000, 60_000)  # now and then: another process had the processor
TIMER_LATE_US = (0, 900)


class HostLoop(asyncio.AbstractEventLoop):
    """See the module. `dead`: nothing of it runs any more."""

    def __init__(self, world: World, name: str, slow_steps: float = 0.0) -> None:
        self.name = name
        self.paused = False
        self.dead = False
        self._world = world
        self._chance = world.chance(f"loop of {name}")
        self._base_us = self._chance.randint(1, 1000) * SECOND_US - world.now_us
        self._slow_steps = slow_steps
        self._ready: deque[asyncio.Handle] = deque()
        self._armed = False

    # -- driven by the world

    def _wake(self) -> None:
        if not self._armed and not self.paused and not self.dead:
            self._armed = True
            draw = self._chance.random()
            if draw < self._slow_steps:
                delay_us = self._chance.randint(*SLOW_STEP_US)
            else:
                delay_us = STEP_US[0] + int((STEP_US[1] - STEP_US[0]) * draw)
            self._world.after(delay_us, self._step)

    def _step(self) -> None:
        self._armed = False
        if self.paused or self.dead:
            return
        ready = self._ready
        events._set_running_loop(self)
        try:
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
                if self.dead:
                    return
        finally:
            events._set_running_loop(None)
        if ready:
            self._wake()

    def _due(self, timer: asyncio.TimerHandle) -> None:
        if not timer._cancelled and not self.dead:
            self._ready.append(timer)
            self._wake()

    def pause(self) -> None:
        """As SIGSTOP: timers become due and calls pile up, and nothing of it runs."""
        self.paused = True

    def resume(self) -> None:
        """As SIGCONT."""
        self.paused = False
        if self._ready:
            self._wake()

    def die(self) -> None:
        """As SIGKILL. What it was about to do stays undone; its objects are kept until `bury`."""
        self.dead = True

    def bury(self) -> None:
        """After the run: let the tasks end, in a world of their own, so that nothing is left half-way."""
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        events._set_running_loop(self)
        try:
            self.dead = True
            for _ in range(1000):
                for task in tasks:
                    task.cancel()
                while self._ready:
                    handle = self._ready.popleft()
                    if not handle._cancelled:
                        handle._run()
                tasks = [task for task in tasks if not task.done()]
                if not tasks:
                    return
        finally:
            events._set_running_loop(None)

    # -- asyncio's interface

    def time(self) -> float:
        return (self._base_us + self._world.now_us) / SECOND_US

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        if not self._armed:
            self._wake()
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        when_us = math.ceil(when * SECOND_US) - self._base_us
        if (self._base_us + when_us) / SECOND_US < when:
            when_us += 1
        late_us = self._chance.randint(*TIMER_LATE_US)
        self._world.at(max(when_us + late_us, self._world.now_us), self._due, timer)
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It stays in the world's queue and is passed over there."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.dead

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead:
            error = context.get("exception")
            self._world.fail(f"{self.name}: {context.get('message')}: {error!r}{_trace_of(error)}")


def _trace_of(error: BaseException | None) -> str:
    if error is None:
        return ""
    import traceback

    return "\n" + "".join(traceback.format_exception(error))

"""The production bundle: the machine's clock, files, network and threads on uvloop or the stock loop."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from runtime.blocking import Blocking, ThreadBlocking
from runtime.clock import Clock, SystemClock
from runtime.entropy import Random, SystemRandom
from runtime.files import FileSystem
from runtime.network import LoopNetwork, Network
from runtime.os_files import OsFileSystem
from runtime.pieces import Pieces
from runtime.tasks import TaskScope
from runtime.timer import LoopTimer

_T = TypeVar("_T")


@dataclass(slots=True)
class Env:
    """Everything through which a component touches the world; the first argument of those that do."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    random: Random
    files: FileSystem
    network: Network
    tasks: TaskScope
    blocking: Blocking
    timer: LoopTimer
    processors: int = 1  # that work may be spread over
    pieces: Pieces = field(default_factory=Pieces)

    async def run_blocking(self, function: Callable[..., _T], *args: Any) -> _T:
        """Run a function that waits for a disk or releases the interpreter's lock on a thread."""
        return await self.blocking.submit(function, *args)

    async def aclose(self) -> None:
        """End the tasks, then the timer, then the threads."""
        await self.tasks.aclose()
        self.timer.close()
        self.blocking.close()


def production_env(loop: asyncio.AbstractEventLoop, name: str = "broker") -> Env:
    """The real thing; `name` heads the names of its tasks."""
    return Env(
        loop=loop,
        clock=SystemClock(loop),
        random=SystemRandom(),
        files=OsFileSystem(),
        network=LoopNetwork(loop),
        tasks=TaskScope(loop, name),
        blocking=ThreadBlocking(loop),
        timer=LoopTimer(loop),
        processors=os.cpu_count() or 1,
    )


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A uvloop, or the stock loop where uvloop is not installed (Windows)."""
    try:
        uvloop = importlib.import_module("uvloop")
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run(main: Callable[[Env], Coroutine[Any, Any, _T]], name: str = "broker") -> _T:
    """Run `main` with a production Env on a new loop and close both afterwards."""

    async def whole() -> _T:
        env = production_env(asyncio.get_running_loop(), name)
        try:
            return await main(env)
        finally:
            await env.aclose()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(whole())

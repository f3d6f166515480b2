"""What a simulated process touches the world through: the twin of `runtime.system.production_env`."""

from __future__ import annotations

from collections.abc import Callable

from runtime.entropy import SeededRandom
from runtime.files import FileSystem
from runtime.system import Env
from runtime.tasks import TaskScope
from runtime.timer import LoopTimer
from tests.simulation.loop import HostLoop
from tests.simulation.network import SimNetwork
from tests.simulation.threads import SimBlocking
from tests.simulation.wire import Kernel, Wire
from tests.simulation.world import MS_US, START_MS, World

WORK_US = (0, 4)  # of processor time between two looks at it
HARD_WORK_US = 8_000
HARD_WORK = 0.002


class SimClock:
    """See `runtime.clock.Clock`. The wall clock may be off by what `offset_ms` says."""

    def __init__(self, world: World, loop: HostLoop, offset_ms: Callable[[], int]) -> None:
        self.monotonic = loop.time
        self._world, self._offset_ms = world, offset_ms
        self._chance = world.chance(f"work of {loop.name}")
        self._worked_us = 0

    def now_ms(self) -> int:
        return START_MS + self._world.now_us // MS_US + self._offset_ms()

    def worked(self) -> float:
        chance = self._chance
        hard = chance.random() < HARD_WORK
        self._worked_us += HARD_WORK_US if hard else chance.randint(*WORK_US)
        return self._worked_us / 1_000_000


def simulated_env(
    world: World,
    wire: Wire,
    kernel: Kernel,
    loop: HostLoop,
    files: FileSystem,
    offset_ms: Callable[[], int] = lambda: 0,
) -> Env:
    """The bundle of one process."""
    return Env(
        loop=loop,
        clock=SimClock(world, loop, offset_ms),
        random=SeededRandom(f"{world.seed}/{loop.name}".encode()),
        files=files,
        network=SimNetwork(wire, kernel, loop),
        tasks=TaskScope(loop, loop.name),
        blocking=SimBlocking(world, loop),
        timer=LoopTimer(loop),
    )

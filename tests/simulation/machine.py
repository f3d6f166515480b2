"""A simulated machine with one broker on it: started, killed, cut from power, paused, stopped in good order.

What outlives the broker's process: the disk, as the page cache has it (kill -9) or as the last syncs left it
(power), and what the metadata store was told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.config.load import load_config
from broker.lifecycle import EXPECTED
from broker.server import Broker
from replication.metadata.store import MetadataStore
from runtime.system import Env
from tests.simulation.env import simulated_env
from tests.simulation.loop import HostLoop
from tests.simulation.power import Fate, PowerFileSystem
from tests.simulation.wire import Kernel, Wire
from tests.simulation.world import START_MS, World

MakeStore = Callable[[Kernel, HostLoop], MetadataStore]

PORT = 9092
COLD = 0.2  # of reads that no answer in memory holds


class Process:
    """One life of the broker."""

    def __init__(self, loop: HostLoop, env: Env, broker: Broker) -> None:
        self.loop, self.env, self.broker = loop, env, broker
        self.serving = False


class BrokerMachine:
    """See the module. `process` is None while none runs; `ended` is called when one ends by itself."""

    def __init__(
        self, world: World, wire: Wire, name: str, settings: Mapping[str, str], make_store: MakeStore
    ) -> None:
        self.world, self.wire, self.name = world, wire, name
        self.kernel = wire.kernel(name)
        self.address = (name, PORT)
        self.clock_offset_ms = 0
        self.process: Process | None = None
        self.lives = 0
        self.started: Callable[[], None] = lambda: None
        self.ended: Callable[[BrokerMachine], None] = lambda machine: None
        self.disk = PowerFileSystem(self._wall_ms)
        self.disk.make_dirs("/data")
        self.disk.sync_dir("/")
        self._settings = {
            "listeners": f"PLAINTEXT://{name}:{PORT}",
            "log.dirs": "/data",
            "log.cleaner.enable": "false",
            **settings,
        }
        self._make_store = make_store
        self._graves: list[HostLoop] = []

    def _wall_ms(self) -> int:
        return START_MS + self.world.now_us // 1000 + self.clock_offset_ms

    @property
    def serving(self) -> bool:
        return self.process is not None and self.process.serving

    def note(self, event: str) -> None:
        self.world.note(self.name, event)

    def start(self, slow_steps: float = 0.001) -> None:
        """Start the broker's process; it serves a little later."""
        assert self.process is None, "it runs"
        if not self.kernel.up:
            self.wire.boot(self.kernel)
        self.lives += 1
        loop = HostLoop(self.world, f"{self.name}.{self.lives}", slow_steps)
        env = simulated_env(self.world, self.wire, self.kernel, loop, self.disk, lambda: self.clock_offset_ms)
        loaded = load_config(None, [f"{key}={value}" for key, value in self._settings.items()])
        broker = Broker(
            loaded, env, lambda: self._gave_up(process), lambda *_: self._make_store(self.kernel, loop)
        )
        process = self.process = Process(loop, env, broker)
        self.disk.on_cut = lambda: loop.die()
        misses = self.world.chance(f"page cache of {loop.name}")
        self.disk.misses = lambda: misses.random() < COLD
        self.note("starts")
        self.started()
        loop.create_task(self._serve(process), name="the broker")

    async def _serve(self, process: Process) -> None:
        try:
            await process.broker.start()
        except EXPECTED as error:
            self.note(f"cannot start: {type(error).__name__}")
            await process.broker.stop()
            self._end(process)
            return
        process.serving = True
        self.note("serves")

    def _gave_up(self, process: Process) -> None:
        self.note("gives up")
        process.loop.create_task(self._stop(process), name="the end")

    def stop(self) -> None:
        """As SIGTERM; `ended` is called when it is done."""
        assert self.process is not None
        process = self.process
        process.serving = False
        self.note("stops")
        process.loop.create_task(self._stop(process), name="the end")

    async def _stop(self, process: Process) -> None:
        process.serving = False
        await process.broker.stop()
        await process.env.aclose()
        self._end(process)

    def _end(self, process: Process) -> None:
        self.note("ended")
        self.world.after(0, self._ended, process)

    def _ended(self, process: Process) -> None:
        if self.process is process:
            self.kill()
            self.ended(self)

    def kill(self) -> None:
        """As SIGKILL: memory is gone, the page cache is not, and the kernel closes the sockets."""
        process = self._take_process()
        self.note("killed")
        self.wire.process_ended(self.kernel, process.loop)
        self.disk = self.disk.next_process()
        self.disk.cut_at, self.disk.draw = -1, lambda operation, path: None

    def lose_power(self, fate: Fate) -> None:
        """The host is off. `fate` decides about what was not synced."""
        self._take_process()
        self.note("without power")
        self.wire.power_off(self.kernel)
        self.disk = self.disk.cut_power(fate)

    def _take_process(self) -> Process:
        process, self.process = self.process, None
        assert process is not None
        process.loop.die()
        self._graves.append(process.loop)
        return process

    def pause(self) -> None:
        """As SIGSTOP."""
        assert self.process is not None
        self.note("paused")
        self.process.loop.pause()

    def resume(self) -> None:
        """As SIGCONT."""
        assert self.process is not None
        self.note("resumed")
        self.process.loop.resume()

    def bury(self) -> None:
        """After the run: let go of all processes there were."""
        if self.process is not None:
            self._take_process()
        self.disk._dead = True
        for loop in self._graves:
            loop.bury()

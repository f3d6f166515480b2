"""The faults of a run: which, when and for how long, drawn from the seed; and their end.

A broker that is down is started again a drawn time later, by whatever ended it. Power losses tell the history
which partitions may have lost records: those that do not sync each append.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

from tests.simulation.files import UNLIMITED, Fault
from tests.simulation.history import History, TopicPartition
from tests.simulation.machine import BrokerMachine
from tests.simulation.power import Kept, Lost, Torn
from tests.simulation.sessions import MetadataServer
from tests.simulation.wire import Wire
from tests.simulation.world import MS_US, World

BETWEEN_US = (100 * MS_US, 1_500 * MS_US)
DOWN_US = (5 * MS_US, 700 * MS_US)
LASTING_US = (50 * MS_US, 1_200 * MS_US)
CUT_OFF_US = (200 * MS_US, 4_000 * MS_US)  # longer than a session, now and then
LONG_US = (1_500 * MS_US, 5_000 * MS_US)

Kind = Callable[[BrokerMachine], None]


class Faults:
    """See the module."""

    def __init__(self, world: World, wire: Wire, machines: Sequence[BrokerMachine], history: History) -> None:
        self._world, self._wire, self._machines, self._history = world, wire, list(machines), history
        self._chance = world.chance("faults")
        self._until_us = 0
        self.promised_on_disk: Callable[[TopicPartition], bool] = lambda partition: False
        self._kinds: Sequence[Kind] = ()
        self.server: MetadataServer | None = None

    def draw_kinds(self, kinds: Sequence[Kind]) -> None:
        """Some of these are what happens in this run."""
        self._kinds = self._chance.sample(kinds, self._chance.randint(2, len(kinds)))

    def begin(self, until_us: int) -> None:
        """Draw faults from now on."""
        self._until_us = until_us
        self._next()

    def _next(self) -> None:
        at_us = self._world.now_us + self._chance.randint(*BETWEEN_US)
        if at_us < self._until_us:
            self._world.at(at_us, self._one)
        else:
            self._world.at(self._until_us, self._mend)

    def _one(self) -> None:
        machine = self._chance.choice(self._machines)
        if machine.process is not None and not machine.process.loop.dead:
            self._chance.choice(self._kinds)(machine)
        self._next()

    def _mend(self) -> None:
        self._wire.heal_all()
        for machine in self._machines:
            machine.disk.capacity_bytes = UNLIMITED
            machine.clock_offset_ms = max(machine.clock_offset_ms, 0)
            if machine.process is not None:
                machine.process.env.blocking.slowness = 1

    def _mark(self, machine: BrokerMachine, name: str) -> None:
        self._world.trace.mark(name)
        machine.note(f"fault: {name}")

    def restart(self, machine: BrokerMachine) -> None:
        """Start a broker that is down, a little later."""
        self._world.after(self._chance.randint(*DOWN_US), self._start, machine)

    def _start(self, machine: BrokerMachine) -> None:
        if machine.process is None:
            machine.start()

    # -- the kinds

    def kill(self, machine: BrokerMachine) -> None:
        self._mark(machine, "kill")
        machine.kill()
        self.restart(machine)

    def lose_power(self, machine: BrokerMachine) -> None:
        self._mark(machine, "power")
        self._go_dark(machine)

    def _go_dark(self, machine: BrokerMachine) -> None:
        fate = self._chance.choice((Lost(), Kept(), Torn(self._chance.randint(0, 1 << 30))))
        machine.lose_power(fate)
        for partition in list(self._history.partitions):
            if not self.promised_on_disk(partition):
                self._history.forgive(partition)
        self._history.group_losses += 1
        self.restart(machine)

    def lose_power_in_a_write(self, machine: BrokerMachine) -> None:
        """The power goes at one of the next changes of the disk, in the middle of what the broker does."""
        disk, process = machine.disk, machine.process
        assert process is not None

        def cut() -> None:
            if not process.loop.dead:
                process.loop.die()
                self._world.after(0, gone)

        def gone() -> None:
            if machine.process is process:
                self._mark(machine, "power in a write")
                self._go_dark(machine)

        disk.on_cut = cut
        disk.cut_at = disk.operations + self._chance.randint(0, 30)

    def pause(self, machine: BrokerMachine) -> None:
        self._mark(machine, "pause")
        self._pause(machine, LASTING_US)

    def long_pause(self, machine: BrokerMachine) -> None:
        """Longer than a session: others lead by the time it goes on."""
        self._mark(machine, "long pause")
        self._pause(machine, LONG_US)

    def _pause(self, machine: BrokerMachine, duration_us: tuple[int, int]) -> None:
        process = machine.process
        machine.pause()

        def resume() -> None:
            if machine.process is process:
                machine.resume()

        self._world.after(self._chance.randint(*duration_us), resume)

    def stop(self, machine: BrokerMachine) -> None:
        if machine.serving:
            self._mark(machine, "stop")
            machine.stop()

    def reset(self, machine: BrokerMachine) -> None:
        sockets = [socket for socket in machine.kernel.sockets if socket.out is not None]
        for socket in self._chance.sample(sockets, min(len(sockets), self._chance.randint(1, 3))):
            self._mark(machine, "reset")
            self._wire.reset(socket)

    def cut(self, machine: BrokerMachine) -> None:
        others = sorted(name for name in self._wire.kernels if name != machine.name)
        other = self._chance.choice(others)
        ways = self._chance.choice(
            ([(machine.name, other)], [(other, machine.name)], [(machine.name, other), (other, machine.name)])
        )
        self._mark(machine, f"cut {len(ways)}")
        self._cut_for_a_while(ways, self._chance.randint(*LASTING_US))

    def cut_off(self, machine: BrokerMachine) -> None:
        """The host hears nobody, or is not heard, or both."""
        others = sorted(name for name in self._wire.kernels if name != machine.name)
        directions = self._chance.choice((("in",), ("out",), ("in", "out")))
        ways = [(name, machine.name) for name in others if "in" in directions]
        ways += [(machine.name, name) for name in others if "out" in directions]
        self._mark(machine, f"cut off {' '.join(directions)}")
        self._cut_for_a_while(ways, self._chance.randint(*CUT_OFF_US))

    # -- the metadata server, where there is one

    def expire(self, machine: BrokerMachine) -> None:
        """The session ends, though the broker lives and is connected."""
        self._mark(machine, "expire")
        self._metadata.expire(machine.kernel)

    def expire_all(self, machine: BrokerMachine) -> None:
        """All sessions end together."""
        self._mark(machine, "expire all")
        for each in self._machines:
            self._metadata.expire(each.kernel)

    def lose_metadata(self, machine: BrokerMachine) -> None:
        """Nobody reaches the server, or is reached by it."""
        self._mark(machine, "lose metadata")
        server, names = self._metadata.kernel.name, [each.name for each in self._machines]
        directions = self._chance.choice((("in",), ("out",), ("in", "out")))
        ways = [(name, server) for name in names if "in" in directions]
        ways += [(server, name) for name in names if "out" in directions]
        self._cut_for_a_while(ways, self._chance.randint(*CUT_OFF_US))

    @property
    def _metadata(self) -> MetadataServer:
        assert self.server is not None, "there is a metadata server"
        return self.server

    def _cut_for_a_while(self, ways: Sequence[tuple[str, str]], duration_us: int) -> None:
        def heal() -> None:
            for way in ways:
                self._wire.heal(*way)

        for way in ways:
            self._wire.cut(*way)
        self._world.after(duration_us, heal)

    def fill_disk(self, machine: BrokerMachine) -> None:
        self._mark(machine, "full disk")
        disk = machine.disk
        disk.capacity_bytes = disk.used_bytes() + self._chance.randint(0, 3_000)

        def roomy() -> None:
            machine.disk.capacity_bytes = UNLIMITED

        self._world.after(self._chance.randint(*LASTING_US), roomy)

    def fail_disk(self, machine: BrokerMachine) -> None:
        """One operation fails with EIO: the log directory goes offline, and with it the broker."""
        self._mark(machine, "failing disk")
        machine.disk.draw = _once(self._chance.choice(("append", "sync", "open", "rename", "read_at")))

    def slow_disk(self, machine: BrokerMachine) -> None:
        self._mark(machine, "slow disk")
        process = machine.process
        assert process is not None
        process.env.blocking.slowness = self._chance.choice((5, 30))

        def fast() -> None:
            process.env.blocking.slowness = 1

        self._world.after(self._chance.randint(*LASTING_US), fast)

    def jump_clock(self, machine: BrokerMachine) -> None:
        self._mark(machine, "clock jump")
        machine.clock_offset_ms += self._chance.choice((-5_000, -200, 300, 20_000))


def _once(operation: str) -> Callable[[str, str], Fault | None]:
    met = False

    def draw(kind: str, path: str) -> Fault | None:
        nonlocal met
        if met or kind != operation:
            return None
        met = True
        return Fault(operation, errno.EIO, path)

    return draw

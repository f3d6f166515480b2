"""One broker on a bad day: whatever was acknowledged is there afterwards.

After a power loss that holds for topics that sync each append; the others may have lost what was on no disk.
"""

from __future__ import annotations

from replication.metadata.memory_store import MemoryTree
from tests.simulation.faults import Faults
from tests.simulation.machine import BrokerMachine
from tests.simulation.scenario import FLUSHED, Scenario
from tests.simulation.store import LocalStores


class OneBroker(Scenario):
    """See the module."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        stores = LocalStores(self.world, MemoryTree())
        settings = {"node.id": "1", **self.drawn_settings()}
        self.broker = BrokerMachine(self.world, self.wire, "b1", settings, stores.make)
        self.broker.disk.held_max = self.chance.choice((0, 2, 1000))
        self.use([self.broker])

    def faults(self) -> Faults:
        faults = Faults(self.world, self.wire, self.machines, self.history)
        faults.promised_on_disk = lambda partition: partition[0] == FLUSHED
        kinds = (
            faults.kill,
            faults.lose_power,
            faults.lose_power_in_a_write,
            faults.pause,
            faults.reset,
            faults.cut,
            faults.fill_disk,
            faults.fail_disk,
            faults.slow_disk,
            faults.stop,
            faults.jump_clock,
        )
        faults.draw_kinds(kinds)
        return faults

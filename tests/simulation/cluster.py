"""Three brokers on bad days: what acks=all was answered for is there afterwards, whoever leads by then.

Each holds a session with a metadata server that can be cut off from any of them. At the end every partition
must have all its replicas in sync again, with equal logs.
"""

from __future__ import annotations

from tests.simulation.faults import Faults, Kind
from tests.simulation.loop import HostLoop
from tests.simulation.machine import BrokerMachine
from tests.simulation.replica_checks import ReplicaChecks
from tests.simulation.scenario import FLUSHED, Scenario
from tests.simulation.sessions import MetadataServer, SimSession
from tests.simulation.watched_tree import WatchedTree
from tests.simulation.wire import Kernel
from tests.simulation.world import MS_US

BROKERS = 3
SESSION_MS = 2_000
LOOK_EVERY_US = 500 * MS_US


class Cluster(Scenario):
    """See the module."""

    replicas = BROKERS
    think_s = 0.3

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        world, chance = self.world, self.chance
        self.tree = WatchedTree(world.fail, lambda text: world.note("tree", text))
        self._server = MetadataServer(world, self.wire, self.tree)
        settings = {
            **self.drawn_settings(),
            "zookeeper.connect": "metadata:2181",
            "zookeeper.session.timeout.ms": str(SESSION_MS),
            "offsets.topic.replication.factor": str(BROKERS),
            "default.replication.factor": str(BROKERS),
            "min.insync.replicas": "2",
            "replica.lag.time.max.ms": str(chance.choice((1_500, 3_000))),
            "replica.fetch.wait.max.ms": str(chance.choice((50, 300, 500))),
            "replica.fetch.backoff.ms": "200",
            "replica.fetch.max.bytes": str(chance.choice((2_000, 1 << 20))),
            "replica.socket.timeout.ms": "1500",
            "controller.socket.timeout.ms": "1500",
            "request.timeout.ms": "1500",
            "num.replica.fetchers": str(chance.choice((1, 1, 2))),
            "leader.imbalance.check.interval.seconds": str(chance.choice((1, 3, 300))),
            "controlled.shutdown.retry.backoff.ms": "200",
        }
        self.use(
            [
                BrokerMachine(
                    world, self.wire, f"b{number}", {"broker.id": str(number), **settings}, self._store
                )
                for number in range(1, BROKERS + 1)
            ]
        )
        self.checks = ReplicaChecks(self.machines, world.fail)
        world.after(LOOK_EVERY_US, self._look)

    def _store(self, kernel: Kernel, loop: HostLoop) -> SimSession:
        return SimSession(self._server, kernel, loop, SESSION_MS)

    def _look(self) -> None:
        self.checks.look(self.partitions)
        self.world.after(LOOK_EVERY_US, self._look)

    def faults(self) -> Faults:
        faults = Faults(self.world, self.wire, self.machines, self.history)
        faults.draw_kinds(self.kinds(faults))
        return faults

    def kinds(self, faults: Faults) -> list[Kind]:
        """What may go wrong."""
        return [
            faults.kill,
            faults.pause,
            faults.reset,
            faults.cut,
            faults.cut_off,
            faults.slow_disk,
            faults.stop,
            faults.jump_clock,
        ]

    def settled(self) -> bool:
        """Everybody serves, all replicas are in sync, and nobody has more than the others."""
        if not all(machine.serving for machine in self.machines):
            return False
        return self.checks.settled(self.partitions, self.tree)

    def check_end(self) -> None:
        self.checks.look(self.partitions)
        self.checks.check_equal(self.partitions)
        self.world.note("check", f"{FLUSHED} and others hold the same on all brokers")


class ClusterOnBadDisks(Cluster):
    """The same with disks that lose power, fail and run full, for topics that sync each append."""

    topics = (FLUSHED,)

    def faults(self) -> Faults:
        faults = super().faults()
        faults.promised_on_disk = lambda partition: partition[0] == FLUSHED
        return faults

    def kinds(self, faults: Faults) -> list[Kind]:
        return [
            faults.lose_power,
            faults.lose_power_in_a_write,
            faults.fail_disk,
            faults.fill_disk,
            *super().kinds(faults),
        ]

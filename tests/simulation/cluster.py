"""Several brokers on bad days: what acks=all was answered for is there afterwards, whoever leads by then.

Each holds a session with a metadata server that can be cut off from any of them. At the end every partition
must have all its replicas in sync again, with equal logs, and be led by whom its assignment names first.
"""

from __future__ import annotations

from tests.simulation.client import wire_name
from tests.simulation.faults import Faults, Kind
from tests.simulation.history import TopicPartition
from tests.simulation.inside import batches_of, replica_on
from tests.simulation.leader_checks import LeaderChecks, broker_ids
from tests.simulation.loop import HostLoop
from tests.simulation.machine import BrokerMachine
from tests.simulation.replica_checks import ReplicaChecks
from tests.simulation.scenario import FLUSHED, Scenario
from tests.simulation.sessions import MetadataServer, SimSession
from tests.simulation.settling import Settling
from tests.simulation.watched_tree import StateChange, WatchedTree
from tests.simulation.wire import Kernel
from tests.simulation.world import MS_US

BROKERS = 3
SESSION_MS = 2_000
COMPARE_EVERY_US = 800 * MS_US
LOOK_EVERY_US = 80 * MS_US
OFTEN_S = (1, 3)
NOBODY_LOOKS = -1


class QuietCluster(Scenario):
    """Three brokers and their clients; nobody changes topics or assignments."""

    replicas = BROKERS
    brokers = BROKERS
    think_s = 0.3

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        world, chance = self.world, self.chance
        self.tree = WatchedTree(world.fail, lambda text: world.note("tree", text))
        self.server = MetadataServer(world, self.wire, self.tree)
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
            "leader.imbalance.check.interval.seconds": str(chance.choice((*OFTEN_S, 300))),
            "controlled.shutdown.retry.backoff.ms": "200",
        }
        self.use(
            [
                BrokerMachine(
                    world, self.wire, f"b{number}", {"broker.id": str(number), **settings}, self._store
                )
                for number in range(1, self.brokers + 1)
            ]
        )
        balanced = int(settings["leader.imbalance.check.interval.seconds"]) in OFTEN_S
        by_id = broker_ids(self.machines)
        self.checks = ReplicaChecks(self.machines, world.fail)
        self.checks.keeps = self.keeps
        self._leader_checks = LeaderChecks(by_id, self.tree, world.fail, self.keeps)
        self._settling = Settling(by_id, self.tree, balanced)
        self.tree.on_state = self._state_changed
        self.tree.may_be_unclean = lambda topic: False
        self.history.leads = self._leads
        self.history.appended_in = self._appended_in
        world.after(LOOK_EVERY_US, self._look)
        world.after(COMPARE_EVERY_US, self._compare_replicas)

    def _store(self, kernel: Kernel, loop: HostLoop) -> SimSession:
        return SimSession(self.server, kernel, loop, SESSION_MS)

    def keeps(self, topic: str) -> bool:
        """Whether a replica keeps what it has acknowledged, whatever happens to its host."""
        return True

    def _state_changed(self, change: StateChange) -> None:
        self._leader_checks.changed(change)
        if change.unclean:
            self.world.trace.mark("unclean leader")
            self.checks.unclean[change.topic_id, change.index] = None
            self.history.forgive((change.topic, change.index))
            self.history.of((change.topic, change.index)).clean_epoch = change.after.leader_epoch

    def _leads(self, partition: TopicPartition, broker_id: int) -> bool:
        state = self.tree.state(wire_name(partition[0]), partition[1])
        return state is not None and state.leader == broker_id

    def _appended_in(self, partition: TopicPartition, broker_id: int, offset: int) -> int | None:
        topic_id = self.tree.topic(wire_name(partition[0])).topic_id or b""
        replica = replica_on(self.machines[broker_id - 1], topic_id, partition[1])
        if replica is None:
            return NOBODY_LOOKS
        found = (epoch for first, last, epoch, _ in batches_of(replica.log) if first <= offset <= last)
        return next(found, None)

    def _look(self) -> None:
        self._leader_checks.look()
        self.world.after(LOOK_EVERY_US, self._look)

    def _compare_replicas(self) -> None:
        self.checks.look()
        self.world.after(COMPARE_EVERY_US, self._compare_replicas)

    def faults(self) -> Faults:
        faults = Faults(self.world, self.wire, self.machines, self.history)
        faults.server = self.server
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

    def unsettled(self) -> list[str]:
        return self._settling.open_matters()

    def check_end(self) -> None:
        self.checks.unclean.clear()
        self.checks.keeps = lambda topic: True
        self._leader_checks.look()
        self.checks.look()
        for key, logs in self._settling.logs().items():
            if len(set(map(tuple, logs.values()))) != 1:
                self.world.fail(f"{key}: the logs differ at the end: {sorted(logs)}")
        self.world.note("check", "all brokers hold the same")


class QuietClusterOnBadDisks(QuietCluster):
    """The same with disks that lose power, fail and run full, for topics that sync each append."""

    topics = (FLUSHED,)

    def keeps(self, topic: str) -> bool:
        return topic == FLUSHED

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

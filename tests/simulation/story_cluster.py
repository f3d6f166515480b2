"""Three whole brokers on simulated hosts, to which a test does what it likes, and what it can see of them.

Time is virtual. All the while it is watched, as in the runs with drawn faults, that the metadata tree and the
replicas' logs break no rule. `tests.simulation.story` adds the clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from replication.controller.cluster_controller import ClusterController
from replication.metadata import controller_payloads, paths
from replication.metadata.payloads import StatePayload
from replication.metadata.store import Operation
from replication.partition import Partition
from tests.simulation.history import History
from tests.simulation.inside import Batch, batches_of
from tests.simulation.loop import HostLoop
from tests.simulation.machine import BrokerMachine
from tests.simulation.replica_checks import ReplicaChecks
from tests.simulation.scenario import Reports
from tests.simulation.sessions import MetadataServer, SimSession
from tests.simulation.watched_tree import WatchedTree
from tests.simulation.wire import Kernel, Wire
from tests.simulation.world import MS_US, SECOND_US, World

SESSION_S, LAG_S = 2.0, 1.5
TICK_S = 0.5  # how much later than its time-out a session may end
METADATA = "metadata"
SLICE_US = 2 * MS_US
LOOK_EVERY_US = 200 * MS_US

SETTINGS = {
    "zookeeper.connect": f"{METADATA}:2181",
    "replica.lag.time.max.ms": str(int(LAG_S * 1000)),
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "200",
    "replica.socket.timeout.ms": "1500",
    "controller.socket.timeout.ms": "1500",
    "request.timeout.ms": "1500",
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.retry.backoff.ms": "200",
}


class StoryCluster:
    """See the module. Brokers are named by their ids, from 1."""

    def __init__(
        self, seed: int = 1, brokers: int = 3, session_s: float = SESSION_S, **settings: str
    ) -> None:
        self.world = world = World(seed)
        self.wire = Wire(world)
        self.history = History(world.fail)
        self.history.leaders_move = True
        self.tree = WatchedTree(world.fail, lambda text: world.note("tree", text))
        self._server = MetadataServer(world, self.wire, self.tree)
        self._session_ms = int(session_s * 1000)
        given = {**SETTINGS, "zookeeper.session.timeout.ms": str(self._session_ms)}
        given.update({key.replace("_", "."): value for key, value in settings.items()})
        self.machines = {
            number: BrokerMachine(
                world, self.wire, f"b{number}", {"broker.id": str(number), **given}, self._store
            )
            for number in range(1, brokers + 1)
        }
        self.checks = ReplicaChecks(list(self.machines.values()), world.fail)
        self.partitions: list[tuple[str, int]] = []
        self._reports = Reports(world)

    def _store(self, kernel: Kernel, loop: HostLoop) -> SimSession:
        return SimSession(self._server, kernel, loop, self._session_ms)

    def begin_life(self) -> None:
        """Start all brokers, and watch them."""
        logging.getLogger().addHandler(self._reports)
        for number in self.machines:
            self.start(number)
        self.until(self.all_know_all, "every broker to know the others")
        self.world.after(LOOK_EVERY_US, self._look)

    def end_life(self) -> None:
        """End all without a word."""
        logging.getLogger().removeHandler(self._reports)
        for machine in self.machines.values():
            machine.bury()

    def _look(self) -> None:
        self.checks.look()
        self.world.after(LOOK_EVERY_US, self._look)

    def all_know_all(self) -> bool:
        """All brokers serve, and their metadata names all."""
        everybody = sorted(self.machines)
        return all(
            machine.serving and sorted(self.image(number).brokers) == everybody
            for number, machine in self.machines.items()
        )

    # Time

    @property
    def now_s(self) -> float:
        return self.world.now_us / SECOND_US

    def pass_time(self, seconds: float) -> None:
        self.world.run(self.world.now_us + int(seconds * SECOND_US))

    def until(self, condition: Callable[[], object], what: str, within_s: float = 60.0) -> None:
        """Let time pass until it is so; an assertion fails when that takes longer."""
        end_us = self.world.now_us + int(within_s * SECOND_US)
        while not condition():
            assert self.world.now_us < end_us, f"not within {within_s:g} s: {what}"
            self.world.run(min(self.world.now_us + SLICE_US, end_us))

    # Faults

    def start(self, number: int) -> None:
        self.machines[number].start(slow_steps=0.0)

    def kill(self, *numbers: int) -> None:
        """As SIGKILL, of all at one moment."""
        for number in numbers:
            self.machines[number].kill()

    def pause(self, number: int) -> None:
        self.machines[number].pause()

    def resume(self, number: int) -> None:
        self.machines[number].resume()

    def cut(self, one: int | str, other: int | str) -> None:
        """Nothing passes between the two hosts, in neither direction."""
        self.cut_one_way(one, other)
        self.cut_one_way(other, one)

    def cut_one_way(self, source: int | str, target: int | str) -> None:
        self.wire.cut(self._host(source), self._host(target))

    def heal(self, *hosts: int | str) -> None:
        """Everything passes again; or between two hosts only."""
        if hosts:
            one, other = map(self._host, hosts)
            self.wire.heal(one, other)
            self.wire.heal(other, one)
        else:
            self.wire.heal_all()

    def _host(self, place: int | str) -> str:
        return place if isinstance(place, str) else self.machines[place].name

    def on_write(self, heard: Callable[[Operation], None]) -> None:
        """`heard` is called for each change of the tree, in the moment in which it was made."""
        apply = self.tree.apply

        def told(operations: Any, session_id: int) -> list[int]:
            results = apply(operations, session_id)
            for operation in operations:
                heard(operation)
            return results

        self.tree.apply = told  # type: ignore[method-assign]

    def kill_at_write(self, number: int, path: str) -> None:
        """Kill a broker in the moment in which that node is written next."""
        killed = []

        def heard(operation: Operation) -> None:
            if operation.path == path and not killed:
                killed.append(number)
                self.kill(number)

        self.on_write(heard)

    # What there is

    def state(self, topic: str, index: int = 0) -> StatePayload:
        """As it is stored."""
        found = self.tree.state(topic, index)
        assert found is not None, f"{topic}-{index} has no state"
        return found

    def leader(self, topic: str, index: int = 0) -> int:
        return self.state(topic, index).leader

    def isr(self, topic: str, index: int = 0) -> tuple[int, ...]:
        return tuple(sorted(self.state(topic, index).isr))

    def topics(self) -> list[str]:
        """The topics that are stored."""
        return sorted(self.tree.children[paths.TOPICS])

    def replicas(self, topic: str, index: int = 0) -> list[int]:
        """Who shall have the replicas of a partition, those that are being added included."""
        return list(self.tree.replicas(topic, index))

    def controller(self) -> int:
        """The id of the controller, -1 while there is none."""
        node = self.tree.nodes.get(paths.CONTROLLER)
        return -1 if node is None else controller_payloads.decode_controller(paths.CONTROLLER, node.value)

    def controller_last(self) -> tuple[int, ...]:
        """The ids of all brokers, the controller's at the end."""
        controller = self.controller()
        return (*(number for number in self.machines if number != controller), controller)

    def controller_epoch(self) -> int:
        return int(self.tree.nodes[paths.CONTROLLER_EPOCH].value)

    def is_registered(self, number: int) -> bool:
        return paths.broker(number) in self.tree.nodes

    def broker_epoch(self, number: int) -> int:
        """Of the registration that is stored."""
        return self.tree.nodes[paths.broker(number)].created_id

    def registrations(self) -> dict[int, int]:
        """The epochs of the brokers that are registered."""
        return {number: self.broker_epoch(number) for number in self.machines if self.is_registered(number)}

    def context(self, number: int) -> Any:
        """The inside of a running broker."""
        process = self.machines[number].process
        assert process is not None, f"broker {number} is down"
        return process.broker.hub.dispatcher._context

    def office(self, number: int) -> ClusterController:
        """A broker's controller, whether it is active or not."""
        found: ClusterController = self.context(number).controller._controller
        return found

    def image(self, number: int) -> Any:
        return self.context(number).holder.current

    def replica(self, number: int, topic: str, index: int = 0) -> Partition:
        found = self.context(number).replicas.get(topic, index)
        assert found is not None, f"{topic}-{index} is not on broker {number}"
        return found

    def batches(self, number: int, topic: str) -> list[Batch]:
        """What a broker has of the first partition on its disk."""
        return batches_of(self.replica(number, topic).log)

"""Three whole brokers in one process whose day a test writes itself: what happens, and what must follow.

    with Story() as story:
        story.create("t", (1, 2, 3))
        story.kill(1)
        story.until(lambda: story.leader("t") == 2, "another leader", within_s=3.5)

Time is virtual, so a limit in seconds is exact and costs nothing. All the while it is watched, as in the runs
with drawn faults, that the metadata tree and the replicas' logs break no rule; `settle` asks at the end that
everybody is in sync with equal logs, and that the loads hold what they were promised.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, TypeVar

from protocol import messages as m
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from replication.metadata import controller_payloads, paths
from replication.metadata.payloads import StatePayload
from replication.metadata.store import Operation
from replication.partition import Partition
from tests.simulation.caller import CallLost
from tests.simulation.client import Client
from tests.simulation.env import simulated_env
from tests.simulation.history import History
from tests.simulation.inside import Batch, batches_of
from tests.simulation.loop import HostLoop
from tests.simulation.machine import BrokerMachine
from tests.simulation.power import PowerFileSystem
from tests.simulation.producer import Producer, ProducerKind
from tests.simulation.reader import Reader, Rows, rows_from
from tests.simulation.replica_checks import ReplicaChecks
from tests.simulation.scenario import Reports
from tests.simulation.sessions import MetadataServer, SimSession
from tests.simulation.watched_tree import WatchedTree
from tests.simulation.wire import Wire
from tests.simulation.world import MS_US, SECOND_US, World

SESSION_S, LAG_S = 2.0, 1.5
TICK_S = 0.5  # how much later than its time-out a session may end
METADATA = "metadata"
ANSWER_S = 20.0
SLICE_US = 2 * MS_US
LOOK_EVERY_US = 200 * MS_US
TRACE_LINES = 40

SETTINGS = {
    "zookeeper.connect": f"{METADATA}:2181",
    "zookeeper.session.timeout.ms": str(int(SESSION_S * 1000)),
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

_T = TypeVar("_T")


class Story:
    """See the module. Brokers are named by their ids, from 1."""

    def __init__(self, seed: int = 1, brokers: int = 3, **settings: str) -> None:
        self.world = world = World(seed)
        self.wire = Wire(world)
        self.history = History(world.fail)
        self.history.leaders_move = True
        self.tree = WatchedTree(world.fail, lambda text: world.note("tree", text))
        self._server = MetadataServer(world, self.wire, self.tree)
        given = {**SETTINGS, **{key.replace("_", "."): value for key, value in settings.items()}}
        self.machines = {
            number: BrokerMachine(
                world, self.wire, f"b{number}", {"broker.id": str(number), **given}, self._store
            )
            for number in range(1, brokers + 1)
        }
        self.checks = ReplicaChecks(list(self.machines.values()), world.fail)
        self.topic_ids: dict[str, bytes] = {}
        self.partitions: list[tuple[str, int]] = []
        self._clients: list[Client] = []
        self._loads: list[asyncio.Task[None]] = []
        self._reports = Reports(world)

    def _store(self, kernel: Any, loop: HostLoop) -> SimSession:
        return SimSession(self._server, kernel, loop, int(SESSION_S * 1000))

    def __enter__(self) -> Story:
        logging.getLogger().addHandler(self._reports)
        self._admin = self._client(Client, "admin")
        for number in self.machines:
            self.start(number)
        self.until(self._all_know_all, "every broker to know the others")
        self.world.after(LOOK_EVERY_US, self._look)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger().removeHandler(self._reports)
        logging.disable(logging.CRITICAL)
        try:
            for machine in self.machines.values():
                machine.bury()
            for client in self._clients:
                client.env.loop.die()  # type: ignore[attr-defined]
                client.env.loop.bury()  # type: ignore[attr-defined]
        finally:
            logging.disable(logging.NOTSET)
        if error is not None:
            error.add_note(f"last lines:\n{self.world.trace.tail(TRACE_LINES)}")

    def _client(self, of: type[Any], name: str, **more: Any) -> Any:
        loop = HostLoop(self.world, name)
        env = simulated_env(self.world, self.wire, self.wire.kernel(name), loop, PowerFileSystem())
        addresses = [machine.address for machine in self.machines.values()]
        client = of(self.world, env, name, self.history, addresses, list(self.topic_ids), **more)
        self._clients.append(client)
        return client

    def _look(self) -> None:
        self.checks.look()
        self.world.after(LOOK_EVERY_US, self._look)

    def _all_know_all(self) -> bool:
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

    def context(self, number: int) -> Any:
        """The inside of a running broker."""
        process = self.machines[number].process
        assert process is not None, f"broker {number} is down"
        return process.broker.hub.dispatcher._context

    def image(self, number: int) -> Any:
        return self.context(number).holder.current

    def replica(self, number: int, topic: str, index: int = 0) -> Partition:
        found = self.context(number).replicas.get(topic, index)
        assert found is not None, f"{topic}-{index} is not on broker {number}"
        return found

    def batches(self, number: int, topic: str) -> list[Batch]:
        """What a broker has of the first partition on its disk."""
        return batches_of(self.replica(number, topic).log)

    # Clients

    def do(self, work: Coroutine[Any, Any, _T]) -> _T:
        """The result of a client's work."""
        task = self.begin(work)
        self.until(task.done, "a client's work to end")
        return task.result()

    def begin(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """A client's work that goes on while other things happen."""
        task: asyncio.Task[_T] = self._admin.env.loop.create_task(work)
        return task

    def ask(self, number: int, request: m.Message) -> Any:
        """The answer of one broker, at its newest version."""
        return self.do(self.asking(number, request))

    async def asking(self, number: int, request: m.Message) -> Any:
        caller = await self._admin.caller_for(object(), self.machines[number].address)
        return await caller.ask(request, ANSWER_S)

    def create(self, topic: str, *replicas: tuple[int, ...], **configs: str) -> None:
        """A topic, all replicas of which are in sync, and of which all brokers know."""
        answer = self.ask(self.controller(), self._creation(topic, replicas, configs))
        assert answer.topics[0].error_code == 0, answer
        self._knows(topic, answer.topics[0].topic_id, len(replicas))
        self.until(lambda: self._in_sync(topic, len(replicas)), f"all replicas of {topic} to be in sync")
        running = [number for number, machine in self.machines.items() if machine.serving]
        self.until(
            lambda: all(topic in self.image(number).topics for number in running), f"all to know of {topic}"
        )

    def begin_create(self, topic: str, *replicas: tuple[int, ...], **configs: str) -> None:
        """The same, whatever becomes of it."""
        self.begin(self._asked(self._creation(topic, replicas, configs)))

    def begin_delete(self, topic: str) -> None:
        kind = m.DeleteTopicsRequest
        self.partitions = [each for each in self.partitions if each[0] != topic]
        self.begin(self._asked(kind(topics=[kind.DeleteTopicState(name=topic)], timeout_ms=5_000)))

    def begin_move(self, topic: str, *replicas: int) -> None:
        kind = m.AlterPartitionReassignmentsRequest
        partition = kind.ReassignablePartition(partition_index=0, replicas=list(replicas))
        topics = [kind.ReassignableTopic(name=topic, partitions=[partition])]
        self.begin(self._asked(kind(topics=topics, timeout_ms=5_000)))

    def begin_elect(self, topic: str) -> None:
        """Have the preferred replica of the first partition lead."""
        kind = m.ElectLeadersRequest
        wanted = [kind.TopicPartitions(topic=topic, partitions=[0])]
        self.begin(self._asked(kind(election_type=0, topic_partitions=wanted, timeout_ms=5_000)))

    async def _asked(self, request: m.Message) -> None:
        """Of the controller; it may go meanwhile."""
        with contextlib.suppress(CallLost):
            await self.asking(self.controller(), request)

    def _creation(
        self, topic: str, replicas: tuple[tuple[int, ...], ...], configs: Mapping[str, str]
    ) -> m.CreateTopicsRequest:
        kind = m.CreateTopicsRequest
        wanted = kind.CreatableTopic(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                kind.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                for index, brokers in enumerate(replicas)
            ],
            configs=[
                kind.CreatableTopicConfig(name=name.replace("_", "."), value=value)
                for name, value in configs.items()
            ],
        )
        return kind(topics=[wanted], timeout_ms=5_000)

    def _knows(self, topic: str, topic_id: bytes, partitions: int) -> None:
        """From now on clients work with it, and the end of the story looks at it."""
        self.topic_ids[topic] = topic_id
        self._admin._topics = list(self.topic_ids)
        self.partitions += [(topic, index) for index in range(partitions)]

    def _in_sync(self, topic: str, partitions: int) -> bool:
        return self.checks.settled([(topic, index) for index in range(partitions)], self.tree)

    async def producing(
        self, number: int, topic: str, *values: bytes, acks: int = -1, timeout_ms: int = 1_000
    ) -> Any:
        """Produce to the first partition as a broker has it; the partition's part of the answer."""
        kind = m.ProduceRequest
        self.history.sending(
            (topic, 0), "test", [(0, value) for value in values], ordered=False, repeatable=True
        )
        records = bytes(build_batch([Record(0, 1_700_000_000_000, None, value) for value in values]))
        data = [kind.PartitionProduceData(index=0, records=records)]
        topics = [kind.TopicProduceData(name=topic, topic_id=self.topic_ids[topic], partition_data=data)]
        request = kind(acks=acks, timeout_ms=timeout_ms, topic_data=topics)
        answer = (await self.asking(number, request)).responses[0].partition_responses[0]
        if acks == -1 and answer.error_code == 0:
            self.history.acknowledged((topic, 0), answer.base_offset, values)
        return answer

    def produce(self, number: int, topic: str, *values: bytes, **more: Any) -> int:
        """The error code of a produce."""
        return int(self.do(self.producing(number, topic, *values, **more)).error_code)

    def read(self, number: int, topic: str) -> Rows:
        """What a consumer finds in the first partition at a broker: (offset, value)."""
        kind = m.FetchRequest
        wanted = [kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
        topics = [kind.FetchTopic(topic=topic, topic_id=self.topic_ids[topic], partitions=wanted)]
        request = kind(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=topics)
        found = self.ask(number, request).responses[0].partitions[0]
        assert found.error_code == 0, found
        return rows_from(found.records or b"", 0)

    def values(self, number: int, topic: str) -> list[bytes]:
        return [value for _, value in self.read(number, topic)]

    def metadata(self, number: int, topic: str) -> Any:
        """What a broker tells of the first partition of a topic."""
        names = [m.MetadataRequest.MetadataRequestTopic(name=topic)]
        answer = self.ask(number, m.MetadataRequest(topics=names, allow_auto_topic_creation=False))
        return answer.topics[0].partitions[0]

    def load(self, *topics: str) -> Producer:
        """An idempotent producer with acks=all that goes on until `settle`, whatever happens."""
        partitions = [each for each in self.partitions if each[0] in topics]
        kind = ProducerKind(acks=-1, idempotent=True, think_s=0.1)
        name = f"load{len(self._loads) + 1}"
        producer: Producer = self._client(Producer, name, kind=kind, partitions=partitions)
        self._loads.append(producer.env.loop.create_task(producer.run()))  # type: ignore[arg-type]
        return producer

    def acks(self) -> int:
        return self.history.acked_records

    def await_acks(self, count: int = 30, within_s: float = 60.0) -> None:
        """So many more records are acknowledged."""
        wanted = self.acks() + count
        self.until(lambda: self.acks() >= wanted, f"{count} more acknowledged records", within_s)

    # The end

    def settle(self, within_s: float = 30.0) -> None:
        """All is mended; in the end everybody is in sync, the logs are equal, and no promise was broken."""
        self.heal()
        for number, machine in self.machines.items():
            if machine.process is None:
                self.start(number)
        for client in self._clients:
            client.stopping = True
        self.until(lambda: all(load.done() for load in self._loads), "the loads to end", within_s)
        self.until(
            lambda: self._all_know_all() and self.checks.settled(self.partitions, self.tree),
            "all replicas to be in sync",
            within_s,
        )
        self.checks.look()
        self.checks.check_equal(self.partitions)
        if self.partitions:
            self._verify()

    def _verify(self) -> None:
        reader: Reader = self._client(Reader, "verifier", partitions=self.partitions, keep=True)
        reading = reader.env.loop.create_task(reader.read_to_end())
        self.until(reading.done, "everything to be read")
        for partition in self.partitions:
            self.history.check_log(partition, 0, reader.rows[partition])
        self.pass_time(0)
        assert not self.world.failures, self.world.failures

"""One broker, its clients and a bad day: what a seed draws, and what must hold at its end.

Ten virtual seconds: topics are made, clients run, faults come and go until the eighth second; then everything
is mended, the clients end what they began, and the whole log of each partition is read and compared with
what was promised. A client that does not come to its end is a failure, too.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

from protocol import messages as m
from replication.metadata.memory_store import MemoryTree
from tests.simulation.client import Client, create_topic
from tests.simulation.committer import Committer
from tests.simulation.env import simulated_env
from tests.simulation.faults import Faults
from tests.simulation.history import History, TopicPartition
from tests.simulation.loop import HostLoop
from tests.simulation.machine import BrokerMachine
from tests.simulation.power import PowerFileSystem
from tests.simulation.producer import Producer, ProducerKind
from tests.simulation.reader import Reader
from tests.simulation.wire import Wire, WireSettings
from tests.simulation.world import MS_US, SECOND_US, SimulationFailed, World

FAULTS_FROM_US, FAULTS_UNTIL_US, CLIENTS_UNTIL_US = 1 * SECOND_US, 8 * SECOND_US, 9 * SECOND_US
END_WITHIN_US = 20 * SECOND_US
FLUSHED, PLAIN = "flushed", "plain"

KINDS = (
    ProducerKind(acks=-1, idempotent=True),
    ProducerKind(acks=-1, idempotent=True, depth=1),
    ProducerKind(acks=-1, retries=True),
    ProducerKind(acks=1),
    ProducerKind(acks=1, retries=True),
    ProducerKind(acks=0),
)
WIRES = (
    WireSettings(),
    WireSettings(delay_us=(1 * MS_US, 8 * MS_US), window_bytes=8 << 10, split=0.4),
    WireSettings(delay_us=(100, 40 * MS_US), spikes=0.02, window_bytes=1 << 20),
    WireSettings(delay_us=(50, 200), bytes_per_second=400_000, window_bytes=16 << 10),
)


class Run:
    """See the module."""

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        chance = world.chance("scenario")
        self.wire = Wire(world, chance.choice(WIRES))
        self.history = History(world.fail)
        settings = {
            "node.id": "1",
            "log.roll.ms": str(chance.choice((300, 2_000, 1 << 40))),
            "log.index.interval.bytes": str(chance.choice((0, 500, 4096))),
            "log.flush.offset.checkpoint.interval.ms": str(chance.choice((300, 2_000, 60_000))),
            "replica.high.watermark.checkpoint.interval.ms": str(chance.choice((300, 5_000))),
            "log.roll.jitter.ms": "0",
            "file.delete.delay.ms": "500",
            "offsets.topic.num.partitions": "3",
        }
        self.broker = BrokerMachine(world, self.wire, "b1", settings, MemoryTree())
        self.broker.disk.held_max = chance.choice((0, 2, 1000))
        self.broker.started = self._broker_started
        self.broker.ended = self._broker_ended
        self.partitions: list[TopicPartition] = [
            (topic, index) for topic in (FLUSHED, PLAIN) for index in range(chance.randint(1, 3))
        ]
        self.faults = Faults(world, self.wire, [self.broker], self.history)
        self.faults.promised_on_disk = lambda partition: partition[0] == FLUSHED
        self._chance = chance
        self._clients: list[Client] = []
        self._running = 0
        self.finished = False

    def _broker_started(self) -> None:
        self.history.restarts += 1

    def _broker_ended(self, why: str) -> None:
        self.faults.ended(self.broker, why)

    def run(self) -> str:
        """The digest of the trace. Raises SimulationFailed."""
        reports = _Reports(self.world)
        logger = logging.getLogger()
        logger.addHandler(reports)
        try:
            self.broker.start()
            self._spawn(self._prepare())
            self.world.at(FAULTS_FROM_US, self.faults.begin, FAULTS_UNTIL_US)
            self.world.at(CLIENTS_UNTIL_US, self._stop_clients)
            if not self.world.run(CLIENTS_UNTIL_US + END_WITHIN_US):
                raise SimulationFailed("the clients do not come to their end")
        finally:
            logger.removeHandler(reports)
            self._bury()
        return self.world.trace.digest

    def _bury(self) -> None:
        """Let the tasks of all processes end, without a word."""
        logging.disable(logging.CRITICAL)
        try:
            self.broker.bury()
            for client in self._clients:
                client.env.loop.die()
                client.env.loop.bury()
        finally:
            logging.disable(logging.NOTSET)

    def _client(self, of: type[Client], name: str, *args: Any, **more: Any) -> Any:
        loop = HostLoop(self.world, name)
        env = simulated_env(self.world, self.wire, self.wire.kernel(name), loop, PowerFileSystem())
        slow = 0.0 if name in ("admin", "verifier") else self._chance.choice((0.0, 0.0, 0.05, 0.3))
        client = of(
            self.world, env, name, self.history, [self.broker.address], (FLUSHED, PLAIN), slow, *args, **more
        )
        self._clients.append(client)
        return client

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """A task of the one that leads the run."""
        if not self._clients:
            self._client(Client, "admin")
        self._clients[0].env.loop.create_task(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        self._running += 1
        await work
        self._running -= 1

    async def _prepare(self) -> None:
        admin, request = self._clients[0], m.CreateTopicsRequest
        topics = [
            request.CreatableTopic(
                name=topic,
                num_partitions=sum(1 for each in self.partitions if each[0] == topic),
                replication_factor=1,
                configs=[request.CreatableTopicConfig(name="flush.messages", value=value)],
            )
            for topic, value in ((FLUSHED, "1"), (PLAIN, str((1 << 63) - 1)))
        ]
        await create_topic(admin, self.broker.address, request(topics=topics, timeout_ms=1_000))
        chance = self._chance
        kinds = [KINDS[0], *(chance.choice(KINDS) for _ in range(chance.randint(1, 2)))]
        for number, kind in enumerate(kinds, 1):
            some = sorted(chance.sample(self.partitions, chance.randint(1, len(self.partitions))))
            self._begin(self._client(Producer, f"p{number}", kind=kind, partitions=some))
        for number in range(1, chance.randint(2, 3)):
            sessions = chance.random() < 0.5
            self._begin(self._client(Reader, f"c{number}", partitions=self.partitions, sessions=sessions))
        self._begin(self._client(Committer, "g1", partitions=self.partitions[-2:]))

    def _begin(self, client: Any) -> None:
        client.env.loop.create_task(self._guarded(client.run()), name=client.name)

    def _stop_clients(self) -> None:
        for client in self._clients:
            client.stopping = True
        self._look_for_end()

    def _look_for_end(self) -> None:
        if self._running:
            self.world.after(20 * MS_US, self._look_for_end)
        else:
            self._spawn(self._verify())

    async def _verify(self) -> None:
        self.wire.settings = WireSettings()
        reader = self._client(Reader, "verifier", partitions=self.partitions, keep=True)
        done = reader.env.loop.create_task(reader.read_to_end(), name="verifier")
        done.add_done_callback(lambda _: self._compare(reader))

    def _compare(self, reader: Reader) -> None:
        for partition in self.partitions:
            rows = reader.rows[partition]
            self.history.check_log(partition, self.history.of(partition).start_offset, rows)
            self.world.note("verifier", f"{partition} {len(rows)} records")
        self.finished = True
        self.world.stop()


class _Reports(logging.Handler):
    """What the broker reports with a trace is a failure of the run."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self._world.note("log", f"{record.name} {record.levelname}")
        if record.exc_info:
            formatter = logging.Formatter()
            self._world.fail(f"logged: {text}\n{formatter.formatException(record.exc_info)}")

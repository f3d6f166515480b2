"""What all runs have in common: brokers, their clients, bad days, and the comparison at the end.

Topics are made; then for nine virtual seconds clients run, and faults come and go until the eighth. All
is mended, the clients end what they began, `unsettled` says when nothing is under way any more, and the whole
log of each partition is read and compared with what was promised. Who does not come to an end is a failure,
too.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any

from protocol import messages as m
from tests.simulation.client import Client, create_topics
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

READY_WITHIN_US = 8 * SECOND_US
FAULTS_FROM_US, FAULTS_UNTIL_US, CLIENTS_UNTIL_US = (
    SECOND_US // 2,
    8 * SECOND_US,
    9 * SECOND_US,
)  # from then on
END_WITHIN_US = 20 * SECOND_US
FLUSHED, PLAIN, RISKY, TXN = "flushed", "plain", "risky", "txn"
CONFIGS = {
    FLUSHED: {"flush.messages": "1"},
    PLAIN: {"flush.messages": str((1 << 63) - 1)},
    RISKY: {"unclean.leader.election.enable": "true"},
    TXN: {},
}

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


class Scenario:
    """See the module. A kind of run makes its `machines` and says what is drawn and promised."""

    replicas = 1
    topics: tuple[str, ...] = (FLUSHED, PLAIN)
    think_s = 0.1  # of producers
    machines: list[BrokerMachine]

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        self.chance = world.chance("scenario")
        self.wire = Wire(world, self.chance.choice(WIRES))
        self.history = History(world.fail)
        self.history.leaders_move = self.replicas > 1
        self.partitions: list[TopicPartition] = [
            (topic, index) for topic in self.topics for index in range(self.chance.randint(1, 3))
        ]
        self.clients: list[Client] = []
        self.stopping = False
        self._running = 0

    def drawn_settings(self) -> dict[str, str]:
        """Broker settings that differ from run to run."""
        chance = self.chance
        return {
            "log.roll.ms": str(chance.choice((300, 2_000, 1 << 40))),
            "log.index.interval.bytes": str(chance.choice((0, 500, 4096))),
            "log.flush.offset.checkpoint.interval.ms": str(chance.choice((300, 2_000, 60_000))),
            "replica.high.watermark.checkpoint.interval.ms": str(chance.choice((300, 5_000))),
            "log.roll.jitter.ms": "0",
            "file.delete.delay.ms": "500",
            "offsets.topic.num.partitions": "3",
        }

    def faults(self) -> Faults:
        """What may go wrong."""
        raise AssertionError("each kind of run has its own")

    def unsettled(self) -> list[str]:
        """What is still under way, once faults and clients have ended."""
        return []

    def check_end(self) -> None:
        """More that must be true at the end."""

    def use(self, machines: Sequence[BrokerMachine]) -> None:
        """The brokers of the run; each hears of starts and ends."""
        self.machines = list(machines)
        for machine in self.machines:
            machine.started = self._broker_started

    def _broker_started(self) -> None:
        self.history.restarts += 1

    def run(self) -> str:
        """The digest of the trace. Raises SimulationFailed."""
        reports = Reports(self.world)
        logger = logging.getLogger()
        logger.addHandler(reports)
        try:
            faults = self.faults()
            for machine in self.machines:
                machine.ended = faults.restart
                machine.start()
            self._spawn(self._prepare(faults))
            if not self.world.run(READY_WITHIN_US + CLIENTS_UNTIL_US + END_WITHIN_US):
                raise SimulationFailed(f"the run does not come to its end: {self.unsettled()}")
        finally:
            logger.removeHandler(reports)
            self._bury()
        return self.world.trace.digest

    def _bury(self) -> None:
        """Let the tasks of all processes end, without a word."""
        logging.disable(logging.CRITICAL)
        try:
            for machine in self.machines:
                machine.bury()
            for client in self.clients:
                client.env.loop.die()
                client.env.loop.bury()
        finally:
            logging.disable(logging.NOTSET)

    # -- clients

    def _client(
        self, of: type[Client], name: str, topics: Sequence[str] = (), ids: Any = None, **more: Any
    ) -> Any:
        loop = HostLoop(self.world, name)
        env = simulated_env(self.world, self.wire, self.wire.kernel(name), loop, PowerFileSystem())
        slow = 0.0 if name in ("admin", "verifier") else self.chance.choice((0.0, 0.0, 0.05, 0.3))
        topics = topics or self.topics
        addresses = [machine.address for machine in self.machines]
        client = of(self.world, env, name, self.history, addresses, topics, slow, ids, **more)
        self.clients.append(client)
        return client

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """A task of the one that leads the run."""
        if not self.clients:
            self._client(Client, "admin")
        self.clients[0].env.loop.create_task(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        self._running += 1
        await work
        self._running -= 1

    async def _prepare(self, faults: Faults) -> None:
        request, config = m.CreateTopicsRequest, m.CreateTopicsRequest.CreatableTopicConfig
        topics = [
            request.CreatableTopic(
                name=topic,
                num_partitions=sum(1 for each in self.partitions if each[0] == topic),
                replication_factor=self.replicas,
                configs=[
                    config(name="min.insync.replicas", value=str(self.replicas // 2 + 1)),
                    *(config(name=name, value=value) for name, value in CONFIGS[topic].items()),
                ],
            )
            for topic in self.topics
        ]
        await create_topics(self.clients[0], request(topics=topics, timeout_ms=1_000))
        world, now_us = self.world, self.world.now_us
        if now_us > READY_WITHIN_US:
            world.fail("the topics take long to be made")
        world.at(now_us + FAULTS_FROM_US, faults.begin, now_us + FAULTS_UNTIL_US)
        world.at(now_us + CLIENTS_UNTIL_US, self._stop_clients)
        chance = self.chance
        kinds = [KINDS[0], *(chance.choice(KINDS) for _ in range(chance.randint(1, 2)))]
        for number, drawn in enumerate(kinds, 1):
            kind = replace(drawn, think_s=self.think_s)
            some = sorted(chance.sample(self.partitions, chance.randint(1, len(self.partitions))))
            self._begin(self._client(Producer, f"p{number}", kind=kind, partitions=some))
        for number in range(1, chance.randint(2, 3)):
            sessions = chance.random() < 0.5
            self._begin(self._client(Reader, f"c{number}", partitions=self.partitions, sessions=sessions))
        self._begin(self._client(Committer, "g1", partitions=self.partitions[-2:]))
        self.begin_more()

    def begin_more(self) -> None:
        """Clients of this kind of run."""

    def _begin(self, client: Any) -> None:
        client.env.loop.create_task(self._guarded(client.run()), name=client.name)

    # -- the end

    def passing(self) -> tuple[dict[str, bytes], list[TopicPartition]]:
        """Topics that come and go, and are there at the end: their ids and partitions."""
        return {}, []

    def _stop_clients(self) -> None:
        self.stopping = True
        for client in self.clients:
            client.stopping = True
        self._look_for_end()

    def _look_for_end(self) -> None:
        if self._running or self.unsettled():
            self.world.after(60 * MS_US, self._look_for_end)
        else:
            self._spawn(self._verify())

    async def _verify(self) -> None:
        self.wire.settings = WireSettings()
        ids, more = self.passing()
        partitions = [*self.partitions, *more]
        reader = self._client(
            Reader, "verifier", topics=[*self.topics, *ids], ids=ids, partitions=partitions, keep=True
        )
        done = reader.env.loop.create_task(reader.read_to_end(), name="verifier")
        done.add_done_callback(lambda _: self._compare(reader, partitions))

    def _compare(self, reader: Reader, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            rows = reader.rows[partition]
            self.history.check_log(partition, self.history.of(partition).start_offset, rows)
            self.world.note("verifier", f"{partition} {len(rows)} records")
        self.check_end()
        self.world.stop()


class Reports(logging.Handler):
    """A broker's reports; one with a trace is a failure of the run."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self._world.note("log", f"{record.name} {record.levelname}")
        if record.exc_info:
            formatter = logging.Formatter()
            self._world.fail(f"logged: {text}\n{formatter.formatException(record.exc_info)}")

"""Three whole brokers in one process whose day a test writes itself: what happens, and what must follow.

    with Story() as story:
        story.create("t", (1, 2, 3))
        story.kill(1)
        story.until(lambda: story.leader("t") == 2, "another leader", within_s=3.5)

A limit in seconds is exact and costs nothing, for time is virtual. `settle` asks at the end that everybody is
in sync with equal logs, and that the loads hold what they were promised.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any, TypeVar

from protocol import messages as m
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.simulation.caller import Caller, CallLost
from tests.simulation.client import Client
from tests.simulation.env import simulated_env
from tests.simulation.loop import HostLoop
from tests.simulation.power import PowerFileSystem
from tests.simulation.producer import Producer, ProducerKind
from tests.simulation.reader import Reader, Rows, rows_from
from tests.simulation.story_cluster import LAG_S, METADATA, SESSION_S, TICK_S, StoryCluster

__all__ = ["LAG_S", "METADATA", "SESSION_S", "TICK_S", "Story"]

ANSWER_S = 20.0
TRACE_LINES = 40

_T = TypeVar("_T")


class Story(StoryCluster):
    """See the module."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.topic_ids: dict[str, bytes] = {}
        self._clients: list[Client] = []
        self._loads: list[asyncio.Task[None]] = []

    def __enter__(self) -> Story:
        self._admin = self._client(Client, "admin")
        self.begin_life()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.disable(logging.CRITICAL)
        try:
            self.end_life()
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

    def ask(self, number: int, request: m.Message, version: int | None = None) -> Any:
        """The answer of one broker, at its newest version where none is given."""
        return self.do(self.asking(number, request, version))

    async def asking(self, number: int, request: m.Message, version: int | None = None) -> Any:
        caller = await self._admin.caller_for(object(), self.machines[number].address)
        return await caller.ask(request, ANSWER_S, version)

    def create(self, topic: str, *replicas: tuple[int, ...], **configs: str) -> None:
        """A topic, all replicas of which are in sync, and of which all brokers know."""
        answer = self.ask(self.controller(), self._creation(topic, replicas, configs))
        assert answer.topics[0].error_code == 0, answer
        self._knows(topic, answer.topics[0].topic_id, len(replicas))
        self.until(lambda: self.in_sync(topic), f"all replicas of {topic} to be in sync")
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

    def in_sync(self, topic: str) -> bool:
        """All replicas are in sync and have all there is, and the leader and they know it."""
        return self.checks.settled([each for each in self.partitions if each[0] == topic], self.tree)

    def caller(self, number: int) -> Caller:
        """A connection to a broker, on which it is waited for."""
        return self.do(self._admin.caller_for(object(), self.machines[number].address))

    async def producing(self, number: int, topic: str, *values: bytes, **more: Any) -> Any:
        """Produce to the first partition as a broker has it; the partition's part of the answer."""
        caller = await self._admin.caller_for(object(), self.machines[number].address)
        return await self.sending(caller, topic, *values, **more)

    async def sending(
        self, caller: Caller, topic: str, *values: bytes, acks: int = -1, timeout_ms: int = 1_000
    ) -> Any:
        """The same, over a connection that is there."""
        kind = m.ProduceRequest
        numbered = [(0, value) for value in values]
        self.history.sending((topic, 0), "test", numbered, ordered=False, repeatable=True)
        records = bytes(build_batch([Record(0, 1_700_000_000_000, None, value) for value in values]))
        data = [kind.PartitionProduceData(index=0, records=records)]
        topics = [kind.TopicProduceData(name=topic, topic_id=self.topic_ids[topic], partition_data=data)]
        request = kind(acks=acks, timeout_ms=timeout_ms, topic_data=topics)
        answer = (await caller.ask(request, ANSWER_S)).responses[0].partition_responses[0]
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
            lambda: self.all_know_all() and self.checks.settled(self.partitions, self.tree),
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

"""A simulated administrator: has partitions moved and cancels that, changes replication factors, deletes and
makes topics, adds partitions, changes configurations, elects leaders, deletes records.

Each request may be lost, refused or carried out unseen; whatever came of it, nothing that was promised to
clients may suffer. Answers that Kafka would not give are failures.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from protocol import messages as m
from tests.simulation.caller import Caller, CallLost
from tests.simulation.client import REQUEST_TIMEOUT_S, Client
from tests.simulation.history import TopicPartition

PREFERRED, UNCLEAN = 0, 1  # elections
TOPIC, BROKER = 2, 4  # resources with configurations
SET = 0
BETWEEN_S = (0.1, 1.0)
LONG_MS = 1 << 40
GROUP = ("__consumer_offsets", 2)  # where the group g1 has its coordinator

# What may come of a request here, besides that there is no controller (41) or too little time (7).
MOVED = {0, 3, 39, 85}
ELECTED = {0, 3, 17, 80, 83, 84}
GROWN = {0, 3, 37, 38, 60}
DELETED = {0, 1, 3, 5, 6, 56, 75, 78}
CONFIGURED = {0, 3}
TOPICS_CHANGED = {0, 3, 36, 38}

Operation = Callable[[], Awaitable[None]]


@dataclass(slots=True, frozen=True)
class Estate:
    """What is there to be administered. `passing` comes and goes; `risky` may lose what it has."""

    brokers: Sequence[int]
    steady: Sequence[str]
    passing: str
    risky: str
    partitions: Sequence[TopicPartition]
    exists: Callable[[str], bool]
    partitions_max: int = 4


class Administrator(Client):
    """See the module."""

    def __init__(self, *args: Any, estate: Estate) -> None:
        super().__init__(*args)
        self._estate = estate
        operations: list[Operation] = [
            self._move,
            self._move,
            self._cancel,
            self._come_or_go,
            self._grow,
            self._elect,
            self._configure_topic,
            self._configure_brokers,
            self._delete_records,
        ]
        self._operations = self.chance.sample(operations, self.chance.randint(2, len(operations)))

    async def run(self) -> None:
        """Until it is told to stop."""
        low, high = BETWEEN_S
        while not self.stopping:
            await asyncio.sleep(low + (high - low) * self.chance.random())
            try:
                await self.chance.choice(self._operations)()
            except CallLost:
                self.forget_controller()
                await self.back_off()
        self.close()

    def _met(self, what: str, error: int, allowed: set[int]) -> None:
        self.world.trace.mark(what if error == 0 else f"{what}: {error}")
        self.world.note(self.name, f"{what}: {error}")
        if error == 41:
            self.forget_controller()
        elif error not in allowed and error != 7:
            self.world.fail(f"{self.name}: {what}: error {error}")

    async def _ask(self, request: Any) -> Any:
        caller = await self.controller()
        return await caller.ask(request, REQUEST_TIMEOUT_S)

    async def _ask_anybody(self, request: Any) -> Any:
        address = self.chance.choice(self.bootstrap)
        caller: Caller = await self.caller_for(("bootstrap", address), address)
        return await caller.ask(request, REQUEST_TIMEOUT_S)

    def _some(self, most: int = 3) -> list[TopicPartition]:
        known = [*self._estate.partitions, (self._estate.passing, 0), GROUP]
        return sorted(self.chance.sample(known, self.chance.randint(1, min(most, len(known)))))

    # -- moves

    def _target(self) -> list[int]:
        brokers, chance = self._estate.brokers, self.chance
        count = chance.choice([1, 2, 2, *(min(3, len(brokers)) for _ in range(5)), len(brokers)])
        return chance.sample(list(brokers), count)

    async def _move(self) -> None:
        await self._reassign("moved", {each: self._target() for each in self._some()})

    async def _cancel(self) -> None:
        await self._reassign("cancelled", dict.fromkeys(self._some(20)))

    async def _reassign(self, what: str, targets: dict[TopicPartition, list[int] | None]) -> None:
        request = m.AlterPartitionReassignmentsRequest
        topics: dict[str, Any] = {}
        for (topic, index), replicas in targets.items():
            entry = topics.setdefault(topic, request.ReassignableTopic(name=topic, partitions=[]))
            entry.partitions.append(request.ReassignablePartition(partition_index=index, replicas=replicas))
        answer = await self._ask(request(timeout_ms=1_000, topics=list(topics.values())))
        if answer.error_code:
            self._met(what, answer.error_code, MOVED)
            return
        for response in answer.responses:
            for each in response.partitions:
                self._met(what, each.error_code, MOVED)

    # -- topics

    async def _come_or_go(self) -> None:
        name = self._estate.passing
        if self._estate.exists(name):
            delete = m.DeleteTopicsRequest
            answer = await self._ask(
                delete(
                    topics=[delete.DeleteTopicState(name=name)],
                    topic_names=[name],
                    timeout_ms=self.chance.choice((0, 1_000)),
                )
            )
            self._met("deleted", answer.responses[0].error_code, TOPICS_CHANGED)
            return
        request = m.CreateTopicsRequest
        config = request.CreatableTopicConfig
        configs = [config(name="min.insync.replicas", value="2"), config(name="flush.messages", value="1")]
        topic = request.CreatableTopic(
            name=name,
            num_partitions=self.chance.randint(1, 2),
            replication_factor=self.chance.choice((2, 3)),
            configs=configs,
        )
        answer = await self._ask(request(topics=[topic], timeout_ms=1_000))
        self._met("created", answer.topics[0].error_code, TOPICS_CHANGED)

    async def _grow(self) -> None:
        topic = self.chance.choice(self._estate.steady)
        count = 1 + sum(1 for name, _ in self._estate.partitions if name == topic)
        if count > self._estate.partitions_max:
            return
        request = m.CreatePartitionsRequest
        more = request.CreatePartitionsTopic(name=topic, count=count, assignments=None)
        answer = await self._ask(request(topics=[more], timeout_ms=1_000))
        self._met("grown", answer.results[0].error_code, GROWN)

    async def _delete_records(self) -> None:
        steady = [each for each in self._estate.partitions if each[0] in self._estate.steady]
        topic, index = self.chance.choice(steady)
        known = self.history.of((topic, index))
        if not known.value_at:
            return
        offset = self.chance.randint(known.start_offset, max(known.value_at))
        known.start_offset = max(known.start_offset, offset)
        caller, _ = await self.leader_of((topic, index))
        request = m.DeleteRecordsRequest
        partition = request.DeleteRecordsPartition(partition_index=index, offset=offset)
        topics = [request.DeleteRecordsTopic(name=topic, partitions=[partition])]
        answer = await caller.ask(request(topics=topics, timeout_ms=1_000), REQUEST_TIMEOUT_S)
        error = answer.topics[0].partitions[0].error_code
        self._met("records deleted", error, DELETED)
        if error:
            self.forget((topic, index))

    # -- leaders

    async def _elect(self) -> None:
        some = self.chance.choice([None, self._some()])
        kind = PREFERRED
        if self.chance.random() < 0.3:
            kind, some = UNCLEAN, [each for each in self._estate.partitions if each[0] == self._estate.risky]
            if not some:
                return
        request = m.ElectLeadersRequest
        topics = None
        if some is not None:
            topics = [request.TopicPartitions(topic=topic, partitions=[index]) for topic, index in some]
        answer = await self._ask(request(election_type=kind, topic_partitions=topics, timeout_ms=1_000))
        if answer.error_code:
            self._met("elected", answer.error_code, ELECTED)
        for topic in answer.replica_election_results:
            for each in topic.partition_result:
                self._met("elected", each.error_code, ELECTED)

    # -- configurations

    async def _configure_topic(self) -> None:
        estate, chance = self._estate, self.chance
        topic = chance.choice([*estate.steady, estate.passing])
        name, values = chance.choice(
            (
                ("min.insync.replicas", ("1", "2", "2", "3")),
                ("segment.ms", ("100", "1000", str(LONG_MS))),
                ("index.interval.bytes", ("0", "4096")),
            )
        )
        if estate.risky and chance.random() < 0.3:
            topic, name, values = estate.risky, "unclean.leader.election.enable", ("true", "true", "false")
        await self._configure(TOPIC, topic, name, chance.choice(values))

    async def _configure_brokers(self) -> None:
        await self._configure(BROKER, "", "num.replica.fetchers", self.chance.choice(("1", "2")))

    async def _configure(self, kind: int, resource: str, name: str, value: str) -> None:
        request = m.IncrementalAlterConfigsRequest
        change = request.AlterableConfig(name=name, config_operation=SET, value=value)
        entry = request.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=[change])
        answer = await self._ask_anybody(request(resources=[entry], validate_only=False))
        self._met("configured", answer.responses[0].error_code, CONFIGURED)

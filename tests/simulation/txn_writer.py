"""A simulated transactional producer: records for several partitions and offsets for its group, all or none.

It speaks as old clients do (`version` 1), which add partitions by themselves and keep their epoch from one
transaction to the next, or as new ones (2), which get another epoch each time. Requests whose answers are
lost are sent again until an answer comes. With version 1 a request that is late might meet the next
transaction under the same epoch, which is what version 2 was made for: after a lost answer it begins anew
with InitProducerId, as a client may. Now and then it forgets everything in the middle, as if it was killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from protocol import messages as m
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.simulation.caller import Caller, CallLost
from tests.simulation.client import REQUEST_TIMEOUT_S, RETRIABLE, Client
from tests.simulation.history import TopicPartition
from tests.simulation.ledger import Ledger, Outcome, Txn

GROUP_KEY, TRANSACTION_KEY = 0, 1
CONCURRENT = 51
INVALID_STATE = 48
LOST_ITS_TRANSACTION = {47, INVALID_STATE, 49, 90, 120}
"""Fenced, or the transaction was aborted by the coordinator because it took too long."""
UNDECIDED = {7, 15, 16}
"""After these the change may have been made all the same."""
OUT_OF_ORDER = 45
VERSIONS = {  # of Produce, TxnOffsetCommit, EndTxn
    1: (11, 4, 4),
    2: (12, 5, 5),
}
FORGETS, COMMITS, WITH_OFFSETS = 0.08, 0.7, 0.5


class LostTransaction(Exception):
    """It is not ours to go on with; `error` says why."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.error = error


class TransactionalWriter(Client):
    """See the module. `sources` are the partitions whose offsets its group (of its own name) commits."""

    def __init__(
        self,
        *args: Any,
        ledger: Ledger,
        partitions: Sequence[TopicPartition],
        sources: Sequence[TopicPartition],
        version: int,
        timeout_ms: int,
    ) -> None:
        super().__init__(*args)
        self._ledger, self._partitions, self._sources = ledger, list(partitions), list(sources)
        self._version, self._timeout_ms = version, timeout_ms
        self._producer: tuple[int, int] | None = None  # id and epoch, while it has them
        self._known: tuple[int, int] = (-1, -1)  # what InitProducerId may name
        self._lives = self._records = 0
        self._late = False  # a request without an answer may still be under way
        self._sequences: dict[TopicPartition, int] = {}
        self._coordinators: dict[int, tuple[int, tuple[str, int]]] = {}

    async def run(self) -> None:
        """Until it is told to stop; the last transaction is ended, or left to its time-out."""
        while not self.stopping:
            if self._producer is None:
                await self._init()
            await self._transaction()
            await asyncio.sleep(self.chance.random() * 0.08)
        self.close()

    # -- one transaction

    async def _transaction(self) -> None:
        txn, chance = self._ledger.begin(self.name), self.chance
        try:
            some = sorted(chance.sample(self._partitions, chance.randint(1, len(self._partitions))))
            for partition in some:
                await self._add(partition)
                for _ in range(chance.randint(1, 2)):
                    await self._produce(txn, partition)
                if chance.random() < 0.2:
                    await asyncio.sleep(chance.random() * self._timeout_ms / 1000)
            if chance.random() < WITH_OFFSETS:
                await self._commit_offsets(txn)
            if chance.random() < FORGETS:
                self.world.trace.mark("transaction forgotten")
                self._producer, self._known = None, (-1, -1)
                return
            await self._end(txn, chance.random() < COMMITS)
        except LostTransaction as lost:
            self.world.trace.mark("transaction lost")
            if txn.outcome is not Outcome.UNKNOWN or lost.error == INVALID_STATE:
                txn.outcome = Outcome.ABORTED  # a commit that was made would be found again
            self._producer = None
        if self._version == 1 and self._late:
            self._producer = None

    async def _add(self, partition: TopicPartition) -> None:
        if self._version == 2:
            return
        producer_id, epoch = self._its_producer
        kind = m.AddPartitionsToTxnRequest
        request = kind(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=partition[0], partitions=[partition[1]])],
        )

        def told(answer: Any) -> int:
            [topic] = answer.results_by_topic_v3_and_below
            return int(topic.results_by_partition[0].partition_error_code)

        await self._decided("add", TRANSACTION_KEY, request, 3, told)

    async def _produce(self, txn: Txn, partition: TopicPartition) -> None:
        numbered = []
        for _ in range(self.chance.randint(1, 4)):
            self._records += 1
            numbered.append((self._records, b"%s:%d " % (self.name.encode(), self._records)))
        values = [value for _, value in numbered]
        self._ledger.adds(txn, partition, values)
        self.history.sending(
            partition, f"{self.name}/{self._lives}", numbered, ordered=True, repeatable=False
        )
        producer_id, epoch = self._its_producer
        sequence = self._sequences.get(partition, 0)
        now_ms = self.env.clock.now_ms()
        batch = build_batch(
            [Record(0, now_ms, None, value) for value in values],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=True,
        )
        kind = m.ProduceRequest
        data = [kind.PartitionProduceData(index=partition[1], records=bytes(batch))]
        topics = [kind.TopicProduceData(name=partition[0], partition_data=data)]
        request = kind(transactional_id=self.name, acks=-1, timeout_ms=1_000, topic_data=topics)
        self._ledger.on_step(self.name, "produce")
        while True:
            try:
                caller, leader = await self.leader_of(partition)
                answer = await caller.ask(request, REQUEST_TIMEOUT_S, VERSIONS[self._version][0])
            except CallLost:
                self._late = True
                self.forget(partition)
                await self.back_off()
                continue
            found = answer.responses[0].partition_responses[0]
            error = int(found.error_code)
            if error == 0:
                self.history.acknowledged(partition, found.base_offset, values)
                self._sequences[partition] = sequence + len(values)
                return
            stale = error == OUT_OF_ORDER and not self.history.leads(partition, leader.node_id)
            self._check("produce", error, also=stale)
            self.forget(partition)
            await self.back_off()

    async def _commit_offsets(self, txn: Txn) -> None:
        producer_id, epoch = self._its_producer
        if self._version == 1:
            request = m.AddOffsetsToTxnRequest(
                transactional_id=self.name, producer_id=producer_id, producer_epoch=epoch, group_id=self.name
            )
            await self._decided("add offsets", TRANSACTION_KEY, request, 3, _top_error)
        kind = m.TxnOffsetCommitRequest
        topics: dict[str, Any] = {}
        for topic, index in self._sources:
            entry = topics.setdefault(topic, kind.TxnOffsetCommitRequestTopic(name=topic, partitions=[]))
            entry.partitions.append(
                kind.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=txn.number)
            )
        commit = kind(
            transactional_id=self.name,
            group_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id_or_member_epoch=-1,
            topics=list(topics.values()),
        )

        def told(answer: Any) -> int:
            return max(int(each.error_code) for topic in answer.topics for each in topic.partitions)

        await self._decided("commit offsets", GROUP_KEY, commit, VERSIONS[self._version][1], told)
        txn.offset = txn.number

    async def _end(self, txn: Txn, commit: bool) -> None:
        producer_id, epoch = self._its_producer
        request = m.EndTxnRequest(
            transactional_id=self.name, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        txn.commit_asked = commit

        def unsure() -> None:
            if commit:
                txn.outcome = Outcome.UNKNOWN

        step = "commit" if commit else "abort"
        answer = await self._decided(
            step, TRANSACTION_KEY, request, VERSIONS[self._version][2], _top_error, unsure
        )
        txn.outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        self.world.trace.mark(f"transaction {txn.outcome.value}")
        if self._version == 2:
            self._begin_with(answer.producer_id, answer.producer_epoch)

    # -- requests

    async def _init(self) -> None:
        """InitProducerId, whatever it takes; it names the epoch before where that is known, now and then."""
        known = self._known if self.chance.random() < 0.3 else (-1, -1)
        while True:
            request = m.InitProducerIdRequest(
                transactional_id=self.name,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=known[0],
                producer_epoch=known[1],
            )
            try:
                answer = await self._decided("init", TRANSACTION_KEY, request, 4, _top_error)
            except LostTransaction:
                if known == (-1, -1):
                    self.world.fail(f"{self.name}: a new producer is fenced")
                    return
                known = -1, -1
                continue
            self._lives += 1
            self._late = False
            self._begin_with(answer.producer_id, answer.producer_epoch)
            return

    def _begin_with(self, producer_id: int, epoch: int) -> None:
        self._producer = self._known = producer_id, epoch
        self._sequences.clear()

    @property
    def _its_producer(self) -> tuple[int, int]:
        assert self._producer is not None
        return self._producer

    async def _decided(
        self,
        step: str,
        key_type: int,
        request: m.Message,
        version: int,
        told: Callable[[Any], int],
        unsure: Callable[[], None] = lambda: None,
    ) -> Any:
        """The good answer of a coordinator. `unsure` is called where an attempt may have had its effect.
        Raises LostTransaction.
        """
        self._ledger.on_step(self.name, step)
        while True:
            try:
                caller = await self._coordinator(key_type)
            except CallLost:
                self._coordinators.pop(key_type, None)
                await self.back_off()
                continue
            try:
                answer = await caller.ask(request, REQUEST_TIMEOUT_S, version)
            except CallLost:
                self._late = True
                unsure()
                self._coordinators.pop(key_type, None)
                await self.back_off()
                continue
            error = told(answer)
            if error == 0:
                return answer
            self._check(step, error)
            if error in UNDECIDED:
                self._late = True
                unsure()
            if error != CONCURRENT:
                self._coordinators.pop(key_type, None)
            await self.back_off()

    def _check(self, step: str, error: int, *, also: bool = False) -> None:
        """Raises LostTransaction; what may be better later is let be."""
        if error in LOST_ITS_TRANSACTION:
            raise LostTransaction(error)
        if error not in RETRIABLE and error != CONCURRENT and not also:
            self.world.fail(f"{self.name}: {step}: error {error}")

    async def _coordinator(self, key_type: int) -> Caller:
        """A connection to it. Raises CallLost."""
        if key_type not in self._coordinators:
            address = self.chance.choice(self.bootstrap)
            caller = await self.caller_for(("bootstrap", address), address)
            request = m.FindCoordinatorRequest(coordinator_keys=[self.name], key_type=key_type)
            [found] = (await caller.ask(request, REQUEST_TIMEOUT_S)).coordinators
            if found.error_code:
                raise CallLost(f"error {found.error_code}")
            self._coordinators[key_type] = found.node_id, (found.host, found.port)
        return await self.caller_for(*self._coordinators[key_type])

    # -- the end

    async def committed_offsets(self) -> dict[TopicPartition, int]:
        """What its group has, once no transaction can change it any more."""
        kind = m.OffsetFetchRequest
        topics: dict[str, Any] = {}
        for topic, index in self._sources:
            entry = topics.setdefault(topic, kind.OffsetFetchRequestTopics(name=topic, partition_indexes=[]))
            entry.partition_indexes.append(index)
        group = kind.OffsetFetchRequestGroup(group_id=self.name, topics=list(topics.values()))

        def told(answer: Any) -> int:
            [found] = answer.groups
            errors = [each.error_code for topic in found.topics for each in topic.partitions]
            return int(found.error_code or max(errors))

        answer = await self._decided("look", GROUP_KEY, kind(groups=[group], require_stable=True), 9, told)
        [found] = answer.groups
        return {
            (topic.name, each.partition_index): each.committed_offset
            for topic in found.topics
            for each in topic.partitions
        }


def _top_error(answer: Any) -> int:
    return int(answer.error_code)

"""Simulated producers: each partition has a lane, a row of batches that are sent in order, some at once.

An idempotent lane sends a batch again, with its sequence, until it is acknowledged; the others give up after
the first failure, or try again and may then be in the log twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from protocol import messages as m
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.simulation.caller import CallLost
from tests.simulation.client import REQUEST_TIMEOUT_S, RETRIABLE, Client, Leader, wire_name
from tests.simulation.history import TopicPartition

OUT_OF_ORDER, UNKNOWN_PRODUCER, BAD_EPOCH = 45, 59, 47
WINDOW = 5  # batches in flight: what a broker remembers of a producer
BIG_BYTES = 20_000
LOST = -1  # as the losses at the begin of a row: something of it is


@dataclass(slots=True, frozen=True)
class ProducerKind:
    acks: int = -1
    idempotent: bool = False
    retries: bool = False
    depth: int = WINDOW
    big: float = 0.02  # of batches
    think_s: float = 0.1  # at most, between two windows

    @property
    def ordered(self) -> bool:
        """Whether what it acknowledges stands in the order of its sending."""
        return self.idempotent


@dataclass(slots=True)
class Batch:
    """One batch of a lane. `unsure`: it was sent before, and may be in the log."""

    values: list[bytes]
    sequence: int
    data: bytes
    losses: int
    restarts: int
    unsure: bool = False


class Producer(Client):
    """See the module."""

    def __init__(self, *args: Any, kind: ProducerKind, partitions: Sequence[TopicPartition]) -> None:
        super().__init__(*args)
        self.kind = kind
        self._partitions = list(partitions)
        self._number = 0
        self._ids: asyncio.Lock = asyncio.Lock()

    async def run(self) -> None:
        """Until it is told to stop, and every lane has ended what it had begun."""
        lanes = [
            self.env.tasks.spawn(f"lane of {topic}-{index}", Lane(self, (topic, index)).run())
            for topic, index in self._partitions
        ]
        for lane in lanes:
            await lane
        self.close()

    def next_number(self) -> int:
        self._number += 1
        return self._number

    async def new_id(self) -> tuple[int, int]:
        """A producer id and its epoch, whatever it takes; -1 if the topics are gone."""
        while not self.gone:
            try:
                address = self.chance.choice(self.bootstrap)
                caller = await self.caller_for(("bootstrap", address), address)
                request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
                answer = await caller.ask(request, REQUEST_TIMEOUT_S)
            except CallLost:
                await self.back_off()
                continue
            if answer.error_code == 0:
                return answer.producer_id, answer.producer_epoch
            await self.back_off()
        return -1, -1


class Lane:
    """The batches of one producer for one partition."""

    def __init__(self, producer: Producer, partition: TopicPartition) -> None:
        self._producer, self._partition = producer, partition
        self._kind, self._chance = producer.kind, producer.chance
        self._window: list[Batch] = []
        self._id, self._epoch, self._sequence = -1, -1, 0
        self._rows = 0  # of sequences so far: a new id begins another one
        self._row_losses = 0
        self._known = False  # something with this id was acknowledged
        self._gap = False  # the first that was had others before it, which were refused

    async def run(self) -> None:
        producer, chance = self._producer, self._chance
        while (self._window or not producer.stopping) and not producer.gone:
            if not self._window:
                await asyncio.sleep(chance.random() * self._kind.think_s)
                if producer.stopping:
                    return
                if self._kind.idempotent and self._id < 0:
                    self._id, self._epoch = await producer.new_id()
                    if producer.gone:
                        return
                    self._sequence = 0
                    self._rows += 1
                    self._known = self._gap = False
                    self._row_losses = producer.history.losses(self._partition)
                self._window = [self._batch() for _ in range(chance.randint(1, self._kind.depth))]
            if not await self._send_window() and self._window:
                await producer.back_off()
        producer.history.unknown_records += sum(len(batch.values) for batch in self._window)

    def _batch(self) -> Batch:
        producer, chance, kind = self._producer, self._chance, self._kind
        size = BIG_BYTES if chance.random() < kind.big else chance.choice((0, 0, 40, 400))
        numbered = []
        for _ in range(chance.randint(1, 6)):
            number = producer.next_number()
            numbered.append((number, b"%s:%d " % (producer.name.encode(), number) + b"." * size))
        values = [value for _, value in numbered]
        lane = f"{producer.name}/{self._rows}"
        producer.history.sending(
            self._partition, lane, numbered, ordered=kind.ordered, repeatable=kind.retries
        )
        now_ms = producer.env.clock.now_ms()
        data = build_batch(
            [Record(0, now_ms, None, value) for value in values],
            codec=chance.choice((0, 0, 0, 1, 3)),
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence if kind.idempotent else -1,
        )
        batch = Batch(
            values,
            self._sequence,
            bytes(data),
            producer.history.losses(self._partition),
            producer.history.restarts,
        )
        self._sequence += len(values)
        return batch

    async def _send_window(self) -> bool:
        """Send every batch of the window in order; keep those that must be sent again. False: back off."""
        producer = self._producer
        try:
            caller, leader = await producer.leader_of(self._partition)
        except CallLost:
            producer.forget(self._partition)
            return False
        if self._kind.acks == 0:
            self._tell(caller, leader.topic_id)
            return True
        begun = []
        for batch in self._window:
            begun.append(caller.begin(self._request(batch, leader.topic_id)))
            if self._chance.random() < 0.3:
                await asyncio.sleep(self._chance.random() * 0.003)
        outcomes = []
        for asked in begun:
            try:
                outcomes.append(_partition_answer(await caller.answer(asked, REQUEST_TIMEOUT_S)))
            except CallLost:
                outcomes.append(None)
        return self._settle(outcomes, leader)

    def _tell(self, caller: Any, topic_id: bytes) -> None:
        for batch in self._window:
            try:
                caller.tell(self._request(batch, topic_id))
            except CallLost:
                break
        self._producer.history.unknown_records += sum(len(batch.values) for batch in self._window)
        self._window.clear()
        if caller.lost:
            self._producer.forget(self._partition)

    def _request(self, batch: Batch, topic_id: bytes) -> m.ProduceRequest:
        topic, index = self._partition
        request = m.ProduceRequest
        return request(
            acks=self._kind.acks,
            timeout_ms=1_000,
            topic_data=[
                request.TopicProduceData(
                    name=wire_name(topic),
                    topic_id=topic_id,
                    partition_data=[request.PartitionProduceData(index=index, records=batch.data)],
                )
            ],
        )

    def _settle(self, outcomes: list[Any], leader: Leader) -> bool:
        """What became of the window. An outcome is the partition's answer, or None if there was none.

        One who leads no more and does not know it yet may lack sequences that the next leader has.
        """
        history, partition, broker_id = self._producer.history, self._partition, leader.node_id
        again: list[Batch] = []
        lost_id = False
        for batch, outcome in zip(self._window, outcomes, strict=True):
            error = None if outcome is None else outcome.error_code
            forgiven = history.losses(partition) != batch.losses
            if error == 0:
                self._gap = self._gap or (bool(again) and not self._known)
                self._known = True
                offset = outcome.base_offset
                stands = history.stands_after_losses(partition, broker_id, leader.epoch, offset)
                if not stands:
                    self._row_losses = LOST
                if not forgiven:
                    firm = stands and (self._kind.acks == -1 or not history.leaders_move)
                    history.acknowledged(partition, offset, batch.values, firm=firm)
            elif error in (OUT_OF_ORDER, UNKNOWN_PRODUCER, BAD_EPOCH) and history.leads(partition, broker_id):
                if not again and not self._may_be_forgotten(batch):
                    self._fail(f"error {error} for sequence {batch.sequence}")
                    return True
                lost_id = lost_id or not again
                again.append(batch)
            elif error is not None and error not in RETRIABLE and error != OUT_OF_ORDER:
                self._fail(f"error {error}")
                return True
            else:
                again.append(batch)
            batch.unsure = batch.unsure or error in (None, 7, 20)
        self._window = again
        if lost_id:  # the log may have lost what was before: begin another row of sequences
            history.unknown_records += sum(len(batch.values) for batch in again)
            self._window, self._id = [], -1
        elif again:
            self._producer.forget(partition)
            if not (self._kind.idempotent or self._kind.retries):
                history.unknown_records += sum(len(batch.values) for batch in again)
                self._window = []
        return not again

    def _may_be_forgotten(self, batch: Batch) -> bool:
        """Whether the broker need not know the sequences before this batch's, or the batch itself.

        A snapshot holds only the last batch of a producer, as Kafka's do: of several that were under way when
        a broker stopped, it knows after its start that one. And whom it does not know may begin with any
        sequence: where the first batches are refused, by a full disk, a later one may be the first it takes.
        """
        history = self._producer.history
        lost = history.losses(self._partition) != self._row_losses
        return lost or self._gap or (batch.unsure and history.restarts != batch.restarts)

    def _fail(self, what: str) -> None:
        self._producer.world.fail(f"{self._producer.name} on {self._partition}: {what}")


def _partition_answer(answer: Any) -> Any:
    return answer.responses[0].partition_responses[0]

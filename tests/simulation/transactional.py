"""A transactional producer in a story, step by step, and what readers of committed records see.

    producer = Transactional(story, "id").init()
    producer.produce("t", b"a")
    assert producer.end(commit=True) == 0

Steps are requests of old clients, which add partitions by themselves and keep their epoch (`version` 1), or
of new ones (2). They go to who coordinates and leads now, and return the broker's error; what may be better
in a moment (no coordinator or leader yet, the transaction before still being ended) is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from protocol import messages as m
from protocol.errors import ErrorCode as E
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.simulation.caller import CallLost
from tests.simulation.reader import rows_from
from tests.simulation.story import Story

TOPIC = "__transaction_state"
SETTINGS = {
    "transaction_state_log_num_partitions": "1",
    "transaction_state_log_replication_factor": "2",
    "transaction_state_log_min_isr": "1",
}
"""Of a story: the coordinator has one partition, which two of three brokers can lead."""

NOW_MS = 1_700_000_000_000
_LATER = (
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.CONCURRENT_TRANSACTIONS,
    E.NOT_LEADER_OR_FOLLOWER,
    E.NOT_ENOUGH_REPLICAS,
)
_AGAIN_S = 0.02
_LONG_S = 20.0


class Transactional:
    """See the module. `sequences` are those of the next batches."""

    def __init__(self, story: Story, transactional_id: str, version: int = 1) -> None:
        self._story, self.id, self._version = story, transactional_id, version
        self.producer_id = self.epoch = -1
        self.sequences: dict[str, int] = {}
        self._numbers = 0

    def init(self) -> Self:
        """Become the producer of the id; the coordinator's topic is made where it is not there."""
        story = self._story
        if TOPIC not in story.topics():
            wanted = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[self.id])
            story.ask(story.controller(), wanted, 4)
            story.until(lambda: TOPIC in story.topics() and len(story.isr(TOPIC)) == 2, "the topic of ids")
        answer = self._coordinator(
            m.InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=60_000), 4
        )
        assert answer.error_code == E.NONE, answer
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences.clear()
        return self

    def produce(self, topic: str, *values: bytes, to: int | None = None, again: bool = True) -> int:
        """One batch, added to the transaction; `to` a broker that need not lead."""
        if self._version == 1 and (error := self.add(topic)) != E.NONE:
            return error
        return self.send(topic, *values, to=to, again=again)

    def add(self, topic: str) -> int:
        """AddPartitionsToTxn of the first partition."""
        kind = m.AddPartitionsToTxnRequest
        request = kind(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        )
        [found] = self._coordinator(request, 3).results_by_topic_v3_and_below
        return int(found.results_by_partition[0].partition_error_code)

    def send(self, topic: str, *values: bytes, to: int | None = None, again: bool = True) -> int:
        """The batch alone."""
        story = self._story
        sequence = self.sequences.get(topic, 0)
        numbered = [(self._numbers + at, value) for at, value in enumerate(values)]
        self._numbers += len(values)
        story.history.of((topic, 0)).has_markers = True
        story.history.sending((topic, 0), self.id, numbered, ordered=False, repeatable=True)
        batch = build_batch(
            [Record(at, NOW_MS, None, value) for at, value in enumerate(values)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        kind = m.ProduceRequest
        data = [kind.PartitionProduceData(index=0, records=bytes(batch))]
        topics = [kind.TopicProduceData(name=topic, topic_id=story.topic_ids[topic], partition_data=data)]
        request = kind(transactional_id=self.id, acks=-1, timeout_ms=1_000, topic_data=topics)

        def told(answer: Any) -> int:
            return int(answer.responses[0].partition_responses[0].error_code)

        version = 13 if self._version == 2 else 10
        answer = self._until_settled(
            lambda: story.leader(topic) if to is None else to, request, version, told
        )
        found = answer.responses[0].partition_responses[0]
        if found.error_code == E.NONE:
            self.sequences[topic] = sequence + len(values)
            story.history.acknowledged((topic, 0), found.base_offset, values)
        return int(found.error_code)

    def end(self, commit: bool) -> int:
        """EndTxn; a producer of version 2 goes on with what the answer names."""
        request = m.EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self._coordinator(request, 5 if self._version == 2 else 3)
        if self._version == 2 and answer.error_code == E.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return int(answer.error_code)

    def state(self, number: int) -> str:
        """As a broker describes it; an error's name where there is one."""
        request = m.DescribeTransactionsRequest(transactional_ids=[self.id])
        [found] = self._story.ask(number, request, 0).transaction_states
        return found.transaction_state if not found.error_code else E(found.error_code).name

    def await_state(self, state: str) -> None:
        """Its coordinator, whoever that is, says so."""
        story = self._story

        def told() -> bool:
            number = story.leader(TOPIC)
            return number >= 0 and story.machines[number].serving and self.state(number) == state

        story.until(told, f"state {state} of {self.id}")

    def _coordinator(self, request: m.Message, version: int) -> Any:
        return self._until_settled(lambda: self._story.leader(TOPIC), request, version, _first_error)

    def _until_settled(self, place: Any, request: m.Message, version: int, told: Any) -> Any:
        story = self._story
        end_s = story.now_s + _LONG_S
        while True:
            if place() >= 0 and story.machines[place()].serving:
                try:
                    answer = story.ask(place(), request, version)
                except CallLost:
                    pass
                else:
                    if told(answer) not in _LATER or story.now_s > end_s:
                        return answer
            assert story.now_s < end_s, f"no answer to {request}"
            story.pass_time(_AGAIN_S)


def _first_error(answer: Any) -> int:
    topics = getattr(answer, "results_by_topic_v3_and_below", None)
    if topics is None:
        return int(answer.error_code)
    return int(topics[0].results_by_partition[0].partition_error_code)


class Idempotent:
    """An idempotent producer of batches of one record each."""

    def __init__(self, story: Story, topic: str) -> None:
        self._story, self._topic = story, topic
        request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = story.ask(story.leader(topic), request)
        assert answer.error_code == E.NONE, answer
        self._producer_id: int = answer.producer_id

    def send(self, number: int, sequence: int, epoch: int = 0) -> tuple[int, int]:
        """Error and offset of the batch with that sequence, from a broker."""
        story, topic = self._story, self._topic
        value = b"%d.%d" % (epoch, sequence)
        story.history.sending((topic, 0), "idempotent", [(sequence, value)], ordered=False, repeatable=False)
        batch = build_batch(
            [Record(0, NOW_MS, None, value)],
            producer_id=self._producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        kind = m.ProduceRequest
        data = [kind.PartitionProduceData(index=0, records=bytes(batch))]
        topics = [kind.TopicProduceData(name=topic, topic_id=story.topic_ids[topic], partition_data=data)]
        answer = story.ask(number, kind(acks=-1, timeout_ms=10_000, topic_data=topics))
        found = answer.responses[0].partition_responses[0]
        if found.error_code == E.NONE:
            story.history.acknowledged((topic, 0), found.base_offset, [value])
        return int(found.error_code), int(found.base_offset)


class Committed:
    """What a reader of committed records gets of the first partition of a topic from one broker."""

    def __init__(self, story: Story, number: int, topic: str, offset: int = 0) -> None:
        kind = m.FetchRequest
        wanted = [kind.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)]
        topics = [kind.FetchTopic(topic=topic, topic_id=story.topic_ids[topic], partitions=wanted)]
        request = kind(
            max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=topics, isolation_level=1
        )
        found = story.ask(number, request, 13).responses[0].partitions[0]
        self.error = found.error_code
        self.stable_end: int = found.last_stable_offset
        self.high_watermark: int = found.high_watermark
        self.aborted: Sequence[tuple[int, int]] = [
            (each.producer_id, each.first_offset) for each in found.aborted_transactions or ()
        ]
        self.rows = rows_from(found.records or b"", offset)

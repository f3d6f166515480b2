"""Idempotent producers: ids, sequences, duplicates and epochs, and what outlives what (KIP-98, KIP-360)."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record, records
from protocol.records.builder import build_batch
from tests.support.transactions import TxnProducer
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

NOW = 1_700_000_000_000
LAST = (1 << 31) - 1


def producer_id(wire: WireClient, version: int = 4) -> int:
    asked = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    answer = wire.send(asked, version)
    while (
        answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    ):  # Apache Kafka fetches a block of ids first
        answer = wire.send(asked, version)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id >= 0
    return int(answer.producer_id)


def send(
    wire: WireClient, topic: str, pid: int, sequence: int, count: int = 1, epoch: int = 0
) -> tuple[int, int]:
    batch = build_batch(
        [Record(i, NOW + sequence, None, b"%d" % (sequence + i), ()) for i in range(count)],
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    answer = wire.produce(topic, batch)
    return answer.error_code, answer.base_offset


@pytest.mark.parametrize("version", range(6))
def test_every_version_hands_out_new_ids(wire: WireClient, version: int) -> None:
    assert len({producer_id(wire, version) for _ in range(3)}) == 3


def test_sequences_run_on(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    assert [send(wire, topic, pid, s, 2) for s in (0, 2, 4)] == [(0, 0), (0, 2), (0, 4)]


def test_a_gap_or_a_step_back_is_45(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    assert send(wire, topic, pid, 0, 3) == (0, 0)
    assert send(wire, topic, pid, 4)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(wire, topic, pid, 1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(wire, topic, pid, 3) == (0, 3)


def test_the_last_five_batches_are_recognised_with_their_offset(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    for sequence in range(0, 14, 2):
        assert send(wire, topic, pid, sequence, 2) == (0, sequence)
    for sequence in range(4, 14, 2):
        assert send(wire, topic, pid, sequence, 2) == (0, sequence)
    assert send(wire, topic, pid, 2, 2)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(wire, topic, pid, 12, 1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    values = [r.value for one in wire.stored_batches(topic) for r in records(one)]
    assert values == [b"%d" % i for i in range(14)]


def test_a_duplicate_answers_the_batchs_timestamp(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    batch = build_batch([Record(0, NOW, None, b"a", ())], producer_id=pid, producer_epoch=0, base_sequence=0)
    assert wire.produce(topic, bytes(batch)).log_append_time_ms == -1
    again = wire.produce(topic, bytes(batch))
    assert (again.error_code, again.base_offset, again.log_append_time_ms) == (0, 0, NOW)


def test_an_older_epoch_is_47_and_a_newer_starts_at_0(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    assert send(wire, topic, pid, 0) == (0, 0)
    assert send(wire, topic, pid, 1, epoch=1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(wire, topic, pid, 0, epoch=1) == (0, 1)
    assert send(wire, topic, pid, 1, epoch=0)[0] == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(wire, topic, pid, 1, epoch=1) == (0, 2)


def test_an_unknown_producer_may_start_anywhere(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    assert send(wire, topic, pid, 7) == (0, 0)
    assert send(wire, topic, pid, 8) == (0, 1)


def test_sequences_wrap_from_the_largest_to_0(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    assert send(wire, topic, pid, LAST) == (0, 0)
    assert send(wire, topic, pid, 1)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(wire, topic, pid, 0) == (0, 1)


def test_a_batch_may_wrap_inside(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    assert send(wire, topic, pid, LAST - 1, 4) == (0, 0)
    assert send(wire, topic, pid, 2) == (0, 4)


def test_producers_do_not_disturb_each_other(wire: WireClient, topic: str) -> None:
    one, other = producer_id(wire), producer_id(wire)
    assert send(wire, topic, one, 0) == (0, 0)
    assert send(wire, topic, other, 0) == (0, 1)
    assert send(wire, topic, one, 1) == (0, 2)
    assert send(wire, topic, other, 0) == (0, 1)


def test_pipelined_batches_of_one_producer(wire: WireClient, topic: str) -> None:
    pid = producer_id(wire)
    Produce = m.ProduceRequest
    requests = []
    for sequence in range(20):
        batch = build_batch(
            [Record(0, NOW, None, b"x", ())], producer_id=pid, producer_epoch=0, base_sequence=sequence
        )
        place = Produce.PartitionProduceData(index=0, records=batch)
        data = [Produce.TopicProduceData(name=topic, partition_data=[place])]
        requests.append((Produce(acks=-1, timeout_ms=30_000, topic_data=data), 9))
    answers = [answer.responses[0].partition_responses[0] for answer in wire.post_all(*requests)]
    assert [(a.error_code, a.base_offset) for a in answers] == [(0, i) for i in range(20)]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_without_a_transactional_id_that_starts_anew_gets_a_new_id(
    wire: WireClient, version: int
) -> None:
    """KIP-360: it tells what it has had; its epochs are its own to raise."""
    pid = producer_id(wire)
    asked = m.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=60_000, producer_id=pid, producer_epoch=3
    )
    answer = wire.send(asked, version)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id > pid


def test_a_producer_outlives_its_records(wire: WireClient, topic: str) -> None:
    """DeleteRecords takes records, not what is known of who wrote them."""
    pid = producer_id(wire)
    for sequence in range(3):
        assert send(wire, topic, pid, sequence) == (0, sequence)
    request = m.DeleteRecordsRequest
    partition = request.DeleteRecordsPartition(partition_index=0, offset=-1)
    asked = request(
        topics=[request.DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=30_000
    )
    assert wire.send(asked, 2).topics[0].partitions[0].low_watermark == 3
    assert send(wire, topic, pid, 2) == (0, 2)  # a duplicate, though its record is gone
    assert send(wire, topic, pid, 5)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(wire, topic, pid, 3) == (0, 3)


def test_a_topic_that_is_made_again_knows_no_producer_of_the_one_before(wire: WireClient, topic: str) -> None:
    """Who goes on with its sequences may do so (KIP-360)."""
    pid = producer_id(wire)
    for sequence in range(3):
        assert send(wire, topic, pid, sequence) == (0, sequence)
    names = [m.DeleteTopicsRequest.DeleteTopicState(name=topic)]
    wire.send(m.DeleteTopicsRequest(topics=names, timeout_ms=30_000), 6)
    wait_until(lambda: create_again(wire, topic), "the topic to be made again")
    wait_until(lambda: end_of(wire, topic) == (0, 0), "the log to be another one")
    assert send(wire, topic, pid, 3) == (0, 0)
    assert send(wire, topic, pid, 3) == (0, 0)
    assert send(wire, topic, pid, 2)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(wire, topic, pid, 4) == (0, 1)


def create_again(wire: WireClient, topic: str) -> bool:
    kind = m.CreateTopicsRequest
    wanted = kind.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    answer = wire.send(kind(topics=[wanted], timeout_ms=30_000), 7)
    return bool(answer.topics[0].error_code == ErrorCode.NONE)


def end_of(wire: WireClient, topic: str) -> tuple[int, int]:
    found = wire.list_offset(topic, -1)
    return int(found.error_code), int(found.offset)


def test_what_a_producer_of_a_transaction_may_begin_with(wire: WireClient, topic: str, name: str) -> None:
    """One that the partition does not know: anything; with epochs for each transaction: zero."""
    old, new = TxnProducer(wire, name).init(), TxnProducer(wire, f"{name}-new").init()
    assert old.add((topic, 0)) == ErrorCode.NONE
    old.sequences[topic, 0] = new.sequences[topic, 0] = 5
    assert old.produce(topic, b"a") == ErrorCode.NONE
    assert new.produce(topic, b"a", version=12) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    new.sequences.clear()
    assert new.produce(topic, b"a", version=12) == ErrorCode.NONE
    assert old.end(commit=False) == ErrorCode.NONE
    assert new.end(commit=False, version=5) == ErrorCode.NONE

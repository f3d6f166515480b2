"""Transactions: what producers, readers and groups see of them (KIP-98, KIP-447, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from protocol.records.builder import stamp_crc
from tests.support.transactions import TxnProducer, await_transactions, committed_values, until_settled
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

NewProducer = Callable[..., TxnProducer]


def latest(wire: WireClient, topic: str, isolation: int) -> int:
    return int(wire.list_offset(topic, -1, replica_id=-1, isolation_level=isolation).offset)


# --- the producer's id


def test_requests_that_are_wrong(wire: WireClient, name: str) -> None:
    await_transactions(wire, name)
    producer = TxnProducer(wire, name)
    for timeout_ms in (0, -1, 900_001):
        assert producer.try_init(transaction_timeout_ms=timeout_ms) == E.INVALID_TRANSACTION_TIMEOUT
    assert producer.try_init(transactional_id="") == E.INVALID_REQUEST
    assert producer.try_init(producer_id=3) == E.INVALID_REQUEST
    assert producer.try_init(producer_epoch=3) == E.INVALID_REQUEST
    producer.await_state("TRANSACTIONAL_ID_NOT_FOUND")  # Apache Kafka loads the topic that it has just made


@pytest.mark.parametrize("version", range(6))
def test_every_version_gives_the_next_epoch(wire: WireClient, producer: TxnProducer, version: int) -> None:
    first = (producer.producer_id, producer.epoch)
    assert producer.try_init(version) == E.NONE
    assert (producer.producer_id, producer.epoch) == (first[0], first[1] + 1)


def test_a_producer_that_says_what_it_has(producer: TxnProducer) -> None:
    pid, epoch = producer.producer_id, producer.epoch
    told = {"producer_id": pid, "producer_epoch": epoch}
    assert producer.try_init(**told) == E.NONE
    assert (producer.producer_id, producer.epoch) == (pid, epoch + 1)
    assert producer.try_init(**told) == E.NONE  # the answer was lost: the same again
    assert (producer.producer_id, producer.epoch) == (pid, epoch + 1)
    assert producer.try_init() == E.NONE
    assert producer.try_init(**told) == E.PRODUCER_FENCED
    assert producer.try_init(3, **told) == E.INVALID_PRODUCER_EPOCH
    assert producer.try_init(producer_id=pid + 100_000, producer_epoch=0) == E.PRODUCER_FENCED


def test_a_zombie_is_fenced(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"lost") == E.NONE
    new = TxnProducer(wire, producer.id)
    assert new.try_init() == E.CONCURRENT_TRANSACTIONS  # the open one is aborted first
    assert until_settled(new.try_init) == E.NONE
    assert (new.producer_id, new.epoch) == (producer.producer_id, producer.epoch + 2)
    assert producer.produce(topic, b"zombie") == E.INVALID_PRODUCER_EPOCH
    assert producer.add((topic, 0)) == E.PRODUCER_FENCED
    assert producer.add((topic, 0), version=1) == E.INVALID_PRODUCER_EPOCH
    assert producer.end(commit=True) == E.PRODUCER_FENCED
    assert producer.end(commit=True, version=1) == E.INVALID_PRODUCER_EPOCH
    assert producer.add_offsets("g") == E.PRODUCER_FENCED
    assert committed_values(wire, topic) == []
    assert committed_values(wire, topic, isolation=0) == [b"lost"]


def test_a_producer_whose_transaction_was_ended_for_it_goes_on(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    """To it that is an end of its own whose answer was lost (KIP-890)."""
    pid, epoch = producer.producer_id, producer.epoch
    other = TxnProducer(wire, producer.id)
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"lost") == E.NONE
    assert other.try_init() == E.CONCURRENT_TRANSACTIONS
    producer.await_state("CompleteAbort")
    assert producer.produce(topic, b"late") == E.INVALID_PRODUCER_EPOCH
    assert producer.end(commit=False, version=4) == E.PRODUCER_FENCED
    assert producer.end(commit=True, version=5) == E.INVALID_TXN_STATE
    assert producer.end(commit=False, version=5) == E.NONE
    assert (producer.producer_id, producer.epoch) == (pid, epoch + 1)
    assert until_settled(lambda: producer.produce(topic, b"lost", version=12)) == E.NONE
    assert other.try_init() == E.CONCURRENT_TRANSACTIONS
    producer.await_state("CompleteAbort")
    assert producer.try_init(producer_id=pid, producer_epoch=epoch + 1) == E.NONE
    assert (producer.producer_id, producer.epoch) == (pid, epoch + 2)
    assert committed_values(wire, topic) == []


def test_a_transaction_that_takes_too_long_is_aborted(wire: WireClient, topic: str, name: str) -> None:
    producer = TxnProducer(wire, name, timeout_ms=3000).init()
    adding = producer.post_add((topic, 0))
    producing = producer.post_produce(topic, b"lost")  # waits at the broker, not for this process
    assert producer.added(adding, (topic, 0)) == [E.NONE]
    assert producer.produced(producing, topic, 1) == E.NONE
    wire.produce_values(topic, b"plain")
    producer.await_state("CompleteAbort")
    wait_until(lambda: latest(wire, topic, 1) == 3, "the marker")
    assert producer.produce(topic, b"late") == E.INVALID_PRODUCER_EPOCH
    assert producer.add((topic, 0)) == E.PRODUCER_FENCED
    assert producer.end(commit=True) == E.PRODUCER_FENCED
    assert committed_values(wire, topic) == [b"plain"]


# --- partitions


def test_partitions_that_are_not_there(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    assert producer.add_each((topic, 0), (topic, 7), ("not-there", 0)) == [
        E.OPERATION_NOT_ATTEMPTED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert producer.state() == "Empty"


def test_an_id_that_is_not_known(wire: WireClient, topic: str, name: str) -> None:
    await_transactions(wire, name)
    producer = TxnProducer(wire, name)
    producer.producer_id, producer.epoch = 1, 0
    assert producer.add((topic, 0)) == E.INVALID_PRODUCER_ID_MAPPING
    assert producer.end(commit=True) == E.INVALID_PRODUCER_ID_MAPPING
    assert producer.add_offsets("g") == E.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds(topic: str, producer: TxnProducer, version: int) -> None:
    assert producer.add((topic, 0), version=version) == E.NONE
    assert producer.add((topic, 0), version=version) == E.NONE
    assert producer.state() == "Ongoing"
    assert producer.end(commit=False) == E.NONE


def verify(producer: TxnProducer, *cells: tuple[str, int], version: int = 5) -> list[int]:
    """AddPartitionsToTxn as brokers ask it, without adding."""
    request = m.AddPartitionsToTxnRequest
    asked = request.AddPartitionsToTxnTransaction(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=True,
        topics=[request.AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in cells],
    )
    [result] = producer.wire.send(request(transactions=[asked]), version).results_by_transaction
    return [
        each.partition_error_code for topic in result.topic_results for each in topic.results_by_partition
    ]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_verify_without_adding(wire: WireClient, name: str, version: int) -> None:
    wire.create_topic(name, 2)
    producer = TxnProducer(wire, name).init()
    cells = ((name, 0), (name, 1))
    assert producer.add((name, 0)) == E.NONE
    assert verify(producer, (name, 0), version=version) == [E.NONE]
    assert verify(producer, (name, 1), version=version) == [E.TRANSACTION_ABORTABLE]
    producer.epoch += 1
    assert verify(producer, (name, 0)) == [E.PRODUCER_FENCED]
    producer.epoch -= 1
    producer.producer_id += 1
    assert verify(producer, (name, 0)) == [E.INVALID_PRODUCER_ID_MAPPING]
    producer.producer_id -= 1
    assert producer.end(commit=False) == E.NONE
    producer.await_state("CompleteAbort")
    assert verify(producer, *cells[:1]) == [E.TRANSACTION_ABORTABLE]


# --- producing


@pytest.mark.parametrize(("version", "error"), [(9, E.INVALID_TXN_STATE), (11, E.TRANSACTION_ABORTABLE)])
def test_a_partition_that_was_not_added_takes_nothing(
    wire: WireClient, topic: str, producer: TxnProducer, version: int, error: E
) -> None:
    assert producer.produce(topic, b"a", version=version) == error
    assert (latest(wire, topic, 0), latest(wire, topic, 1)) == (0, 0)


def test_a_batch_after_the_end_of_its_transaction_takes_nothing(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert producer.produce(topic, b"late") == E.INVALID_TXN_STATE
    assert latest(wire, topic, 1) == 2
    assert committed_values(wire, topic) == [b"a"]


def test_a_batch_that_is_of_no_transaction_while_one_is_open(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    batch = producer.batch((topic, 0), b"b")
    plain = bytearray(batch)
    plain[22] &= ~0x10
    stamp_crc(plain, 0, len(plain))
    assert wire.produce(topic, plain).error_code == E.INVALID_TXN_STATE
    assert producer.end(commit=True) == E.NONE


def test_batches_of_two_producers_in_one_request(wire: WireClient, name: str) -> None:
    wire.create_topic(name, 2)
    one, other = TxnProducer(wire, name).init(), TxnProducer(wire, f"{name}-other").init()
    assert one.add((name, 0)) == E.NONE
    assert other.add((name, 1)) == E.NONE
    request = m.ProduceRequest
    partitions = [
        request.PartitionProduceData(index=0, records=bytes(one.batch((name, 0), b"a"))),
        request.PartitionProduceData(index=1, records=bytes(other.batch((name, 1), b"b"))),
    ]
    topics = [request.TopicProduceData(name=name, partition_data=partitions)]
    answer = wire.send(request(transactional_id=one.id, acks=-1, timeout_ms=30_000, topic_data=topics), 9)
    errors = [each.error_code for each in answer.responses[0].partition_responses]
    assert errors == [E.INVALID_PRODUCER_ID_MAPPING] * 2


def test_a_batch_that_comes_twice_is_stored_once(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    producer.sequences.clear()
    assert producer.produce(topic, b"a") == E.NONE
    producer.sequences[topic, 0] = 5
    assert producer.produce(topic, b"gap") == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert committed_values(wire, topic) == [b"a"]


def test_a_producer_that_lost_count_begins_again_under_the_next_epoch(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    """KIP-360: abort, InitProducerId with what it has, and sequences from zero."""
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a", b"b") == E.NONE
    producer.sequences[topic, 0] = 7
    assert producer.produce(topic, b"c") == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.end(commit=False) == E.NONE
    old = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    assert until_settled(lambda: producer.try_init(**old)) == E.NONE
    assert (producer.producer_id, producer.epoch) == (old["producer_id"], old["producer_epoch"] + 1)
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"d") == E.NONE
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert committed_values(wire, topic) == [b"d"]


# --- the end


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("commit", [True, False])
def test_every_version_ends_and_may_be_repeated(
    wire: WireClient, topic: str, producer: TxnProducer, version: int, commit: bool
) -> None:
    assert producer.end(commit, version) == E.INVALID_TXN_STATE  # nothing has begun
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    assert producer.end(commit, version) == E.NONE
    producer.await_state("CompleteCommit" if commit else "CompleteAbort")
    assert producer.end(commit, version) == E.NONE
    assert producer.end(not commit, version) == E.INVALID_TXN_STATE
    assert committed_values(wire, topic) == ([b"a"] if commit else [])


def test_a_transaction_of_several_partitions_in_turn(wire: WireClient, name: str) -> None:
    wire.create_topic(name, 3)
    producer = TxnProducer(wire, name).init()
    for turn in range(4):
        assert producer.reach_add((name, 0), (name, 1), (name, 2)) == E.NONE
        for partition in range(3):
            assert producer.produce(name, b"%d" % turn, partition=partition) == E.NONE
        assert producer.end(commit=turn % 2 == 0) == E.NONE
    producer.await_state("CompleteAbort")
    for partition in range(3):
        assert committed_values(wire, name, partition=partition) == [b"0", b"2"]


def test_epochs_of_their_own(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    """Transactions of version 2: the broker adds partitions by itself, each end raises the epoch."""
    pid, epoch = producer.producer_id, producer.epoch
    for turn in range(3):
        assert until_settled(lambda turn=turn: producer.produce(topic, b"%d" % turn, version=12)) == E.NONE
        assert producer.state() == "Ongoing"
        assert producer.end(commit=turn != 1, version=5) == E.NONE
        assert (producer.producer_id, producer.epoch) == (pid, epoch + turn + 1)
    producer.await_state("CompleteCommit")
    assert committed_values(wire, topic) == [b"0", b"2"]
    producer.epoch -= 1
    assert producer.end(commit=True, version=5) == E.NONE  # the answer was lost: the same again
    assert producer.epoch == epoch + 3
    producer.epoch -= 1
    assert producer.end(commit=False, version=5) == E.INVALID_TXN_STATE
    producer.epoch += 1
    assert producer.end(commit=True, version=5) == E.INVALID_TXN_STATE
    assert producer.end(commit=False, version=5) == E.NONE  # of nothing; it raises the epoch
    assert producer.epoch == epoch + 4


# --- readers


def test_an_open_transaction_holds_the_last_stable_offset(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    wire.produce_values(topic, b"before")
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    wire.produce_values(topic, b"after")
    assert (latest(wire, topic, 0), latest(wire, topic, 1)) == (3, 1)
    assert committed_values(wire, topic) == [b"before"]
    assert committed_values(wire, topic, isolation=0) == [b"before", b"a", b"after"]
    assert producer.end(commit=False) == E.NONE
    producer.await_state("CompleteAbort")
    assert (latest(wire, topic, 0), latest(wire, topic, 1)) == (4, 4)
    assert committed_values(wire, topic) == [b"before", b"after"]


def test_transactions_that_overlap_and_end_in_the_other_order(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    other = TxnProducer(wire, f"{producer.id}-other").init()
    for each in (producer, other):
        assert each.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a1") == E.NONE
    assert other.produce(topic, b"b1") == E.NONE
    assert producer.produce(topic, b"a2") == E.NONE
    assert other.end(commit=True) == E.NONE
    other.await_state("CompleteCommit")
    assert latest(wire, topic, 1) == 0
    assert producer.end(commit=False) == E.NONE
    producer.await_state("CompleteAbort")
    assert latest(wire, topic, 1) == 5
    assert committed_values(wire, topic) == [b"b1"]
    answer = wire.fetch(topic, 0, isolation_level=1)
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions]
    assert aborted == [(producer.producer_id, 0)]
    assert wire.fetch(topic, 0, isolation_level=0).aborted_transactions is None

"""Transactions that take much, in few bytes or in many, and producers that die in every state of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.hostile.attacks import ask, produce, request_frame
from tests.hostile.victim import MIB, NORMAL_CLIENT_S, STRANGER_BYTES, Victim
from tests.support.transactions import TxnProducer, await_transactions
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

TOPIC, PARTITIONS = "t", 100
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.state.log.num.partitions": "5",
}
MANY = 90_000  # things that a request may name
PRODUCERS = 3000
DEAD_MS = 3000
REGEXES = {"(a*)*b": 0, ".*" * 8000: 0, "[" + "a-z" * 9000 + "]": 0, "((x{100}){100}){100}": 128, "(": 128}


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    """With a topic of many partitions and a coordinator that has begun."""
    with Victim(SETTINGS) as started:
        with started.wire() as wire:
            wire.create_topic(TOPIC, partitions=PARTITIONS)
            await_transactions(wire, "id")
        yield started
        assert started.serves()
        assert not [line for line in started.lines() if "Traceback" in line or " ERROR " in line]


def pipelined(wire: WireClient, frames: list[bytes], at_once: int = 500) -> list[bytes]:
    """The answers of so many requests, some at a time."""
    answers = []
    for at in range(0, len(frames), at_once):
        some = frames[at : at + at_once]
        wire.write(b"".join(some))
        answers += [bytes(wire.read_frame()) for _ in some]
    return answers


def init(transactional_id: str, timeout_ms: int = 60_000) -> bytes:
    request = m.InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
    )
    return request_frame(request, 4)


def described_many_times(victim: Victim) -> tuple[bytes, int]:
    with victim.wire() as wire:
        producer = TxnProducer(wire, "described-many-times").init()
        assert producer.add(*((TOPIC, index) for index in range(PARTITIONS))) == 0
    request = m.DescribeTransactionsRequest(transactional_ids=["described-many-times"] * MANY)
    return request_frame(request, 0), MIB


def absent_ids(victim: Victim) -> tuple[bytes, int]:
    names = [f"no-{number}" for number in range(MANY)]
    return request_frame(m.DescribeTransactionsRequest(transactional_ids=names), 0), 16 * MIB


def producers_described_many_times(victim: Victim) -> tuple[bytes, int]:
    """Nobody has to ask for an id to write under one."""
    frames = []
    for producer_id in range(PRODUCERS):
        batch = build_batch(
            [Record(0, 1_700_000_000_000, None, b"v", ())],
            producer_id=10**9 + producer_id,
            producer_epoch=0,
            base_sequence=0,
        )
        frames.append(request_frame(produce(TOPIC, batch), 9))
    with victim.wire() as wire:
        pipelined(wire, frames)
    request = m.DescribeProducersRequest
    topics = [request.TopicRequest(name=TOPIC, partition_indexes=[0])] * (MANY // 2)
    return request_frame(request(topics=topics), 0), MIB


def partitions_that_are_not_there(victim: Victim) -> tuple[bytes, int]:
    request = m.AddPartitionsToTxnRequest
    topics = [request.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(MANY)))]
    asked = request(
        v3_and_below_transactional_id="nobody",
        v3_and_below_producer_id=1,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=topics,
    )
    return request_frame(asked, 3), MIB


def transactions_that_are_not_there(victim: Victim) -> tuple[bytes, int]:
    """As a broker would ask, on behalf of a thousand producers."""
    request = m.AddPartitionsToTxnRequest
    topics = [request.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(PARTITIONS)))]
    transactions = [
        request.AddPartitionsToTxnTransaction(
            transactional_id=f"no-{number}", producer_id=number, producer_epoch=0, topics=topics
        )
        for number in range(MANY // PARTITIONS)
    ]
    return request_frame(request(transactions=transactions), 4), MIB


def markers(count: int, partitions: int) -> bytes:
    """The ends of so many transactions, each on so many partitions."""
    request = m.WriteTxnMarkersRequest
    topics = [request.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=list(range(partitions)))]
    ends = [
        request.WritableTxnMarker(
            producer_id=10**9 + number, producer_epoch=1, transaction_result=False, topics=topics
        )
        for number in range(count)
    ]
    return request_frame(request(markers=ends), 1)


def markers_of_many_producers(victim: Victim) -> tuple[bytes, int]:
    return markers(300, PARTITIONS), MIB


def markers_on_partitions_that_are_not_there(victim: Victim) -> tuple[bytes, int]:
    return markers(1, MANY), MIB


def offsets_of_a_transaction(victim: Victim) -> tuple[bytes, int]:
    request = m.TxnOffsetCommitRequest
    places = [
        request.TxnOffsetCommitRequestPartition(partition_index=each % PARTITIONS) for each in range(MANY)
    ]
    topics = [request.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=places)]
    asked = request(transactional_id="nobody", group_id="g", producer_id=1, producer_epoch=0, topics=topics)
    return request_frame(asked, 2), MIB


@pytest.mark.parametrize(
    "attack",
    [
        described_many_times,
        absent_ids,
        producers_described_many_times,
        partitions_that_are_not_there,
        transactions_that_are_not_there,
        markers_of_many_producers,
        markers_on_partitions_that_are_not_there,
        offsets_of_a_transaction,
    ],
)
def test_one_request_that_asks_for_very_much(
    victim: Victim, attack: Callable[[Victim], tuple[bytes, int]]
) -> None:
    data, answer_bytes = attack(victim)
    with victim.normal_client() as client, victim.memory() as memory:
        size = ask(victim, data)
    assert size is not None
    assert size < answer_bytes
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < STRANGER_BYTES, memory


def test_thousands_of_transactional_ids(victim: Victim) -> None:
    """What one costs does not grow with what was sent: 1 KB each here. Patterns look at all of them."""
    count = 4000
    with victim.normal_client() as client, victim.memory() as memory, victim.wire() as wire:
        pipelined(wire, [init(f"one-of-many-{number}") for number in range(count)])
        listed = wire.send(m.ListTransactionsRequest(transactional_id_pattern="one-of-many-.*"), 2)
        assert len(listed.transaction_states) == count
        for regex, code in REGEXES.items():
            answer = wire.send(m.ListTransactionsRequest(transactional_id_pattern=regex), 2)
            assert answer.error_code == code, (regex[:30], answer.error_code)
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.growth < count * 8000, memory


@pytest.mark.parametrize("name", ["x" * 32_767, "line\nbreak", "\0", "é" * 10_000])
def test_any_name_is_a_transactional_id(victim: Victim, name: str) -> None:
    with victim.wire() as wire:
        producer = TxnProducer(wire, name).init()
        assert producer.add((TOPIC, 1)) == 0
        assert producer.produce(TOPIC, b"v", partition=1) == 0
        assert producer.end(commit=True) == 0
        states = wire.send(m.DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states
    assert [each.transactional_id for each in states] == [name]


def dies_before_it_adds(producer: TxnProducer) -> None:
    pass


def dies_with_nothing_written(producer: TxnProducer) -> None:
    assert producer.add((TOPIC, 2), (TOPIC, 3)) == 0


def dies_with_a_part_written(producer: TxnProducer) -> None:
    """Its batch waits at the broker: however slow this process is, the transaction is still open."""
    cells = (TOPIC, 2), (TOPIC, 3)
    adding, producing = producer.post_add(*cells), producer.post_produce(TOPIC, b"v", partition=2)
    assert producer.added(adding, *cells) == [0, 0]
    assert producer.produced(producing, TOPIC, 1, partition=2) == 0


def dies_in_the_middle_of_its_end(producer: TxnProducer) -> None:
    """Half of the request's bytes."""
    dies_with_a_part_written(producer)
    request = m.EndTxnRequest(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=True,
    )
    frame = request_frame(request, 3)
    producer.wire.write(frame[: len(frame) // 2])


def end_of(wire: WireClient, partition: int, **fields: int) -> int:
    """ListOffsets of the latest."""
    return int(wire.list_offset(TOPIC, -1, partition=partition, **fields).offset)


def test_producers_that_die_in_every_state(victim: Victim) -> None:
    """Their transactions are aborted when their time is over, and nobody is held back by them."""
    ways: list[Callable[[TxnProducer], Any]] = [
        dies_before_it_adds,
        dies_with_nothing_written,
        dies_with_a_part_written,
        dies_in_the_middle_of_its_end,
    ]
    ids = [f"{way.__name__}-{number}" for way in ways for number in range(50)]
    with victim.normal_client() as client:
        for number, transactional_id in enumerate(ids):
            with victim.wire() as wire:
                ways[number // 50](TxnProducer(wire, transactional_id, timeout_ms=DEAD_MS).init())

        with victim.wire() as wire:

            def ended() -> bool:
                request = m.DescribeTransactionsRequest(transactional_ids=ids)
                states = {each.transaction_state for each in wire.send(request, 0).transaction_states}
                return states == {"Empty", "CompleteAbort"}

            wait_until(ended, "the transactions of the dead to end")
            for partition in (2, 3):
                assert end_of(wire, partition, isolation_level=1) == end_of(wire, partition)
            for transactional_id in ids[::25]:  # each may come back
                producer = TxnProducer(wire, transactional_id).init()
                assert producer.add((TOPIC, 2)) == ErrorCode.NONE
                assert producer.end(commit=False) == ErrorCode.NONE
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client

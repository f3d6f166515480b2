"""What readers of committed records are told of offsets while transactions are open, and after."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.transactions import NOW, TxnProducer, committed_values
from tests.support.wire_client import WireClient

EARLIEST, LATEST, LARGEST = -2, -1, -3


def found(wire: WireClient, topic: str, timestamp: int, isolation: int) -> int:
    return int(wire.list_offset(topic, timestamp, replica_id=-1, isolation_level=isolation).offset)


def at(wire: WireClient, topic: str, timestamp: int, value: bytes) -> None:
    """A record of that time."""
    assert wire.produce(topic, build_batch([Record(0, timestamp, None, value)])).error_code == E.NONE


@pytest.fixture
def undecided(wire: WireClient, topic: str, producer: TxnProducer) -> str:
    """A topic with a record, one of an open transaction, and another one."""
    at(wire, topic, NOW - 10, b"before")
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"open") == E.NONE
    at(wire, topic, NOW + 10, b"after")
    return topic


def test_offsets_are_looked_up_below_the_open_transaction(
    wire: WireClient, undecided: str, producer: TxnProducer
) -> None:
    topic = undecided
    asked = (EARLIEST, LATEST, NOW - 10, NOW - 5, NOW, NOW + 5, NOW + 11)
    assert [found(wire, topic, each, 0) for each in asked] == [0, 3, 0, 1, 1, 2, -1]
    assert [found(wire, topic, each, 1) for each in asked] == [0, 1, 0, -1, -1, -1, -1]
    assert [found(wire, topic, LARGEST, each) for each in (0, 1)] == [2, -1]
    assert producer.end(commit=False) == E.NONE
    producer.await_state("CompleteAbort")
    assert [found(wire, topic, each, 1) for each in asked[:2]] == [0, 4]
    assert [found(wire, topic, each, 1) for each in asked[3:6]] == [1, 1, 2]  # aborted or not


def test_records_are_deleted_under_an_open_transaction(
    wire: WireClient, undecided: str, producer: TxnProducer
) -> None:
    topic = undecided
    request = m.DeleteRecordsRequest
    for offset, start, stable in ((1, 1, 1), (2, 2, 2), (-1, 3, 3)):
        partition = request.DeleteRecordsPartition(partition_index=0, offset=offset)
        topics = [request.DeleteRecordsTopic(name=topic, partitions=[partition])]
        [answer] = wire.send(request(topics=topics, timeout_ms=30_000), 2).topics[0].partitions
        assert (answer.error_code, answer.low_watermark) == (E.NONE, start)
        assert (found(wire, topic, EARLIEST, 1), found(wire, topic, LATEST, 1)) == (start, stable)
    at(wire, topic, NOW, b"later")
    assert found(wire, topic, LATEST, 1) == 3  # the transaction is still open
    assert producer.end(commit=False) == E.NONE
    producer.await_state("CompleteAbort")
    assert found(wire, topic, LATEST, 1) == 5
    answer = wire.fetch(topic, 3, isolation_level=1)
    assert [(each.producer_id, each.first_offset) for each in answer.aborted_transactions] == [
        (producer.producer_id, 1)
    ]


def test_aborted_transactions_are_told_where_they_touch_what_is_read(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    other = TxnProducer(wire, f"{producer.id}-other").init()
    for each in (producer, other):  # offsets 0 and 1, markers at 2 and 3
        assert each.add((topic, 0)) == E.NONE
        assert each.produce(topic, b"x") == E.NONE
    for each in (other, producer):
        assert each.end(commit=False) == E.NONE
        each.await_state("CompleteAbort")
    at(wire, topic, NOW, b"last")
    both = [(producer.producer_id, 0), (other.producer_id, 1)]
    told = []
    for offset in range(5):
        answer = wire.fetch(topic, offset, isolation_level=1, max_wait_ms=0)
        told.append(sorted((each.producer_id, each.first_offset) for each in answer.aborted_transactions))
    assert told == [sorted(both), sorted(both), sorted(both), both[:1], []]
    assert committed_values(wire, topic) == [b"last"]

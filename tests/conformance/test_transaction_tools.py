"""Transactions as admins see them, and markers as brokers and tools write them (KIP-664)."""

from __future__ import annotations

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.transactions import TxnProducer, committed_values
from tests.support.wire_client import WireClient


def test_transactions_described_and_listed(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    request = m.DescribeTransactionsRequest(transactional_ids=[producer.id, "", "not-known"])
    found, empty, unknown = wire.send(request, 0).transaction_states
    assert (empty.error_code, unknown.error_code) == (E.INVALID_REQUEST, E.TRANSACTIONAL_ID_NOT_FOUND)
    assert (found.error_code, found.transaction_state) == (E.NONE, "Ongoing")
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, producer.epoch)
    assert found.transaction_timeout_ms == 60_000
    assert [(each.topic, each.partitions) for each in found.topics] == [(topic, [0])]

    def listed(version: int = 2, **filters: object) -> list[tuple[str, str]]:
        answer = wire.send(m.ListTransactionsRequest(**filters), version)  # type: ignore[arg-type]
        assert answer.error_code == E.NONE
        return [(each.transactional_id, each.transaction_state) for each in answer.transaction_states]

    mine = (producer.id, "Ongoing")
    assert mine in listed(0)
    assert listed(producer_id_filters=[producer.producer_id]) == [mine]
    assert mine in listed(state_filters=["Ongoing", "Nonsense"])
    assert mine not in listed(state_filters=["Empty"])
    assert listed(state_filters=["Nonsense"]) == []
    assert mine not in listed(duration_filter=1_000_000)
    assert mine in listed(duration_filter=0)
    assert listed(transactional_id_pattern=f".*{producer.id[3:]}") == [mine]
    assert listed(transactional_id_pattern=producer.id[:-1] + "x") == []
    answer = wire.send(m.ListTransactionsRequest(state_filters=["Nonsense", "Empty"]), 0)
    assert answer.unknown_state_filters == ["Nonsense"]
    bad = wire.send(m.ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert bad.error_code == E.INVALID_REGULAR_EXPRESSION
    assert producer.end(commit=True) == E.NONE


def producers_of(wire: WireClient, topic: str, partition: int = 0) -> list[tuple[int, ...]]:
    request = m.DescribeProducersRequest
    asked = request.TopicRequest(name=topic, partition_indexes=[partition])
    [found] = wire.send(request(topics=[asked]), 0).topics
    [part] = found.partitions
    if part.error_code:
        return [(part.error_code,)]
    return [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in part.active_producers
    ]


def test_producers_described(wire: WireClient, topic: str, producer: TxnProducer) -> None:
    pid = producer.producer_id
    assert producers_of(wire, topic) == []
    wire.produce_values(topic, b"plain")
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a", b"b") == E.NONE
    assert producers_of(wire, topic) == [(pid, 0, 1, -1, 1)]
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    [(_, _, sequence, coordinator_epoch, start)] = producers_of(wire, topic)
    assert (sequence, start) == (1, -1)
    assert coordinator_epoch >= 0
    assert producers_of(wire, topic, 5) == [(E.UNKNOWN_TOPIC_OR_PARTITION,)]


def write_marker(
    wire: WireClient, producer: TxnProducer, topic: str, coordinator_epoch: int, commit: bool
) -> int:
    request = m.WriteTxnMarkersRequest
    marker = request.WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        topics=[request.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
    )
    [result] = wire.send(request(markers=[marker]), 1).markers
    return int(result.topics[0].partitions[0].error_code)


def test_markers_of_coordinators_that_were_replaced(
    wire: WireClient, topic: str, producer: TxnProducer
) -> None:
    assert producer.try_init() == E.NONE  # so that there is an epoch before
    assert producer.add((topic, 0)) == E.NONE
    assert producer.produce(topic, b"a") == E.NONE
    assert write_marker(wire, producer, topic, 9, commit=False) == E.NONE
    assert write_marker(wire, producer, topic, 9, commit=False) == E.NONE  # again
    assert write_marker(wire, producer, topic, 8, commit=True) == E.TRANSACTION_COORDINATOR_FENCED
    producer.epoch -= 1
    assert write_marker(wire, producer, topic, 9, commit=True) == E.INVALID_PRODUCER_EPOCH
    producer.epoch += 1
    assert committed_values(wire, topic) == []
    assert write_marker(wire, producer, "not-there", 9, commit=True) == E.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_deleted_meanwhile_does_not_stop_the_end(
    wire: WireClient, name: str, producer: TxnProducer
) -> None:
    kept, gone = f"{name}-kept", f"{name}-gone"
    for each in (kept, gone):
        wire.create_topic(each)
        assert producer.add((each, 0)) == E.NONE
        assert producer.produce(each, b"a") == E.NONE
    topics = [m.DeleteTopicsRequest.DeleteTopicState(name=gone)]
    wire.send(m.DeleteTopicsRequest(topics=topics, timeout_ms=30_000), 6)
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert committed_values(wire, kept) == [b"a"]

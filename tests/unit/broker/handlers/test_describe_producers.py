"""DescribeProducers: what a log knows of its producers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from protocol import messages as m
from protocol.errors import ErrorCode as E
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.check import check_produced_batch
from tests.support.handler_broker import HandlerBroker


def described(broker: HandlerBroker, *indexes: int, topic: str = "a") -> list[Any]:
    request = m.DescribeProducersRequest
    asked = request.TopicRequest(name=topic, partition_indexes=list(indexes))
    [found] = broker.call(request(topics=[asked]), 0).topics
    assert found.name == topic
    return list(found.partitions)


def produce(broker: HandlerBroker, producer_id: int, values: int) -> None:
    replica = broker.ctx.replicas.get("a", 0)
    assert replica is not None
    batch = build_batch(
        [Record(0, 1000 + at, None, b"v") for at in range(values)],
        producer_id=producer_id,
        producer_epoch=3,
        base_sequence=7,
    )
    replica.append(check_produced_batch(batch, 0, len(batch), replica.log.rules(), 0), 1, 0)
    replica.write_pending()


def test_each_producer_by_its_id(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        broker.create("a", 2)
        produce(broker, 9, 1)
        produce(broker, 4, 3)
        first, second = described(broker, 0, 1)
        assert (first.error_code, second.error_code, second.active_producers) == (0, 0, [])
        assert [
            (p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp, p.coordinator_epoch)
            for p in first.active_producers
        ] == [(4, 3, 9, 1002, -1), (9, 3, 7, 1000, -1)]
        assert [p.current_txn_start_offset for p in first.active_producers] == [-1, -1]


def test_partitions_that_are_not_here(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        broker.create("a")
        assert [each.error_code for each in described(broker, 5)] == [E.UNKNOWN_TOPIC_OR_PARTITION]
        assert [each.error_code for each in described(broker, 0, topic="b")] == [E.UNKNOWN_TOPIC_OR_PARTITION]
        replica = broker.ctx.replicas.get("a", 0)
        assert replica is not None
        replica.is_leader = False
        assert [each.error_code for each in described(broker, 0)] == [E.NOT_LEADER_OR_FOLLOWER]

"""InitializeShareGroupState. Side by side with Kafka: tests/conformance/test_share_state.py."""

from __future__ import annotations

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.share_requests import ask, topic_of

Request = m.InitializeShareGroupStateRequest


def test_each_partition_has_a_result(broker: HandlerBroker) -> None:
    results = ask(broker, Request, {"start_offset": 3}, {"partition": 1, "state_epoch": -1}, {"partition": 2})
    assert [(each.partition, each.error_code, each.error_message) for each in results] == [
        (0, 0, None),
        (1, 42, "The state epoch cannot be a negative number."),
        (2, 3, "This server does not host this topic-partition."),
    ]


def test_a_topic_without_partitions_is_passed_over(broker: HandlerBroker) -> None:
    topics = [
        Request.InitializeStateData(topic_id=bytes(16)),
        Request.InitializeStateData(topic_id=topic_of(broker), partitions=[Request.PartitionData()]),
    ]
    [result] = broker.call(Request(group_id="g", topics=topics), 0).results
    assert (result.topic_id, len(result.partitions)) == (topic_of(broker), 1)
    assert broker.call(Request(group_id="", topics=topics), 0).results == []

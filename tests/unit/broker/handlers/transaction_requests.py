"""Requests about transactions, for tests of their handlers."""

from __future__ import annotations

from typing import Any

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

ID = "t"
FEW = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}


def coordinate(broker: HandlerBroker) -> None:
    """Have the topic of transactional ids made and loaded."""
    assert broker.call(m.FindCoordinatorRequest(key=ID, key_type=1), 3).error_code == 0


def init(broker: HandlerBroker, name: str = ID) -> dict[str, Any]:
    """A transactional producer; the fields that its requests name."""
    request = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    answer = broker.call(request, 4)
    assert answer.error_code == 0, answer
    return {
        "transactional_id": name,
        "producer_id": answer.producer_id,
        "producer_epoch": answer.producer_epoch,
    }


def add(
    broker: HandlerBroker, producer: dict[str, Any], *cells: tuple[str, int], version: int = 3
) -> list[int]:
    """AddPartitionsToTxn as clients send it: the error of each partition, in the order of the answer."""
    request = m.AddPartitionsToTxnRequest
    answer = broker.call(
        request(
            **{f"v3_and_below_{name}": value for name, value in producer.items()},
            v3_and_below_topics=[
                request.AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in cells
            ],
        ),
        version,
    )
    return [
        part.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for part in topic.results_by_partition
    ]


def end(broker: HandlerBroker, producer: dict[str, Any], commit: bool, version: int = 3) -> Any:
    return broker.call(m.EndTxnRequest(**producer, committed=commit), version)


def state(broker: HandlerBroker, name: str = ID) -> Any:
    """What DescribeTransactions tells of an id."""
    [found] = broker.call(m.DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states
    return found


def await_state(broker: HandlerBroker, wanted: str, name: str = ID) -> None:
    """Let the loop turn until the markers are written."""
    for _ in range(1000):
        if state(broker, name).transaction_state == wanted:
            return
    raise AssertionError(f"{name} is {state(broker, name)}, not {wanted}")

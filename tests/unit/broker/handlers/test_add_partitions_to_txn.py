"""AddPartitionsToTxn: the forms of clients and of brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.transaction_requests import FEW, add, coordinate, init, state


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, FEW) as running:
        running.create("a", 2)
        coordinate(running)
        yield running


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_a_client_adds(broker: HandlerBroker, version: int) -> None:
    assert add(broker, init(broker), ("a", 0), ("a", 1), version=version) == [0, 0]
    found = state(broker)
    assert (found.transaction_state, found.topics[0].partitions) == ("Ongoing", [0, 1])


def test_one_that_is_missing_keeps_all_out(broker: HandlerBroker) -> None:
    errors = add(broker, init(broker), ("a", 0), ("a", 2), ("b", 0), ("a", -1))
    assert errors == [E.OPERATION_NOT_ATTEMPTED, 3, 3, 3]
    assert state(broker).transaction_state == "Empty"


def test_old_versions_do_not_know_fencing(broker: HandlerBroker) -> None:
    producer = init(broker)
    init(broker)
    assert add(broker, producer, ("a", 0), version=2) == [E.PRODUCER_FENCED]
    assert add(broker, producer, ("a", 0), version=1) == [E.INVALID_PRODUCER_EPOCH]


def ask(broker: HandlerBroker, *asked: dict[str, Any]) -> dict[str, list[int]]:
    request = m.AddPartitionsToTxnRequest
    topic = request.AddPartitionsToTxnTopic
    transactions = [
        request.AddPartitionsToTxnTransaction(
            **{**fields, "topics": [topic(name=name, partitions=[index]) for name, index in fields["topics"]]}
        )
        for fields in asked
    ]
    answer = broker.call(request(transactions=transactions), 5)
    return {
        result.transactional_id: [
            part.partition_error_code for each in result.topic_results for part in each.results_by_partition
        ]
        for result in answer.results_by_transaction
    }


def test_brokers_ask_about_many_at_once(broker: HandlerBroker) -> None:
    one, other = init(broker, "one"), init(broker, "other")
    assert add(broker, one, ("a", 0)) == [0]
    found = ask(
        broker,
        {**one, "verify_only": True, "topics": [("a", 0), ("a", 1)]},
        {**other, "verify_only": False, "topics": [("a", 1)]},
        {"transactional_id": "nobody", "producer_id": 1, "verify_only": True, "topics": [("a", 0)]},
    )
    assert found == {
        "one": [0, E.TRANSACTION_ABORTABLE],
        "other": [0],
        "nobody": [E.INVALID_PRODUCER_ID_MAPPING],
    }
    assert state(broker, "other").transaction_state == "Ongoing"
    assert ask(broker, {**one, "verify_only": True, "topics": [("a", 0), ("b", 0)]}) == {
        "one": [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION]
    }
    assert ask(broker) == {}

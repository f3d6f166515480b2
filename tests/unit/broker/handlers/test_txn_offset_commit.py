"""TxnOffsetCommit: pending until the transaction ends, verified before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.transaction.verifier import Question
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import fetched
from tests.unit.broker.handlers.transaction_requests import FEW, await_state, coordinate, end, init, state

GROUP = "g"
Request = m.TxnOffsetCommitRequest


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, FEW) as running:
        running.create("a", 2)
        coordinate(running)
        running.call(m.FindCoordinatorRequest(key=GROUP), 3)
        yield running


def commit(broker: HandlerBroker, producer: dict[str, Any], version: int, **fields: Any) -> list[int]:
    cell = Request.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata="here"
    )
    topic = Request.TxnOffsetCommitRequestTopic(name="a", partitions=[cell])
    known = {"group_id": GROUP, "topics": [topic], **producer, **fields}
    answer = broker.call(Request(**known), version)
    return [part.error_code for each in answer.topics for part in each.partitions]


def added(broker: HandlerBroker) -> dict[str, Any]:
    producer = init(broker)
    assert broker.call(m.AddOffsetsToTxnRequest(**producer, group_id=GROUP), 3).error_code == 0
    return producer


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_client_that_adds_by_itself(broker: HandlerBroker, version: int) -> None:
    producer = added(broker)
    assert commit(broker, producer, version) == [0]
    assert fetched(broker, "a") == -1
    assert end(broker, producer, True).error_code == 0
    await_state(broker, "CompleteCommit")
    assert fetched(broker, "a") == 5


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (E.NETWORK_EXCEPTION, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE),
        (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_ID_MAPPING, E.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_what_the_coordinator_of_the_transaction_says(
    broker: HandlerBroker, monkeypatch: pytest.MonkeyPatch, told: E, expected: E
) -> None:
    producer = added(broker)

    def ask(question: Question, done: Callable[[dict[tuple[str, int], E]], None]) -> None:
        done(dict.fromkeys(question.partitions, told))

    monkeypatch.setattr(broker.ctx.transactions.verifier, "ask", ask)
    assert commit(broker, producer, 3) == [expected]
    assert fetched(broker, "a") == -1


def test_from_version_5_on_the_broker_adds(broker: HandlerBroker) -> None:
    producer = init(broker)
    assert commit(broker, producer, 5) == [0]
    [topic] = state(broker).topics
    assert topic.topic == "__consumer_offsets"


def test_version_6_names_topics_by_id(broker: HandlerBroker) -> None:
    cell = Request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = Request.TxnOffsetCommitRequestTopic
    ids = (broker.ctx.image.topics["a"].topic_id, b"\1" * 16, bytes(16))
    topics = [topic(topic_id=each, partitions=[cell]) for each in ids]
    producer = init(broker)
    assert commit(broker, producer, 6, topics=topics) == [0, E.UNKNOWN_TOPIC_ID, E.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize(("version", "error"), [(3, E.INVALID_TXN_STATE), (4, E.TRANSACTION_ABORTABLE)])
def test_a_group_that_is_not_in_the_transaction(broker: HandlerBroker, version: int, error: E) -> None:
    assert commit(broker, init(broker), version) == [error]


def test_what_is_not_there(broker: HandlerBroker) -> None:
    producer = added(broker)
    cell = Request.TxnOffsetCommitRequestPartition(partition_index=3, committed_offset=5)
    topics = [Request.TxnOffsetCommitRequestTopic(name=name, partitions=[cell]) for name in ("a", "b")]
    assert commit(broker, producer, 3, topics=topics) == [E.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert commit(broker, producer, 3, group_id="") == [E.INVALID_GROUP_ID]
    broker.ctx.groups.manager().runtime.unload(0)
    broker.ctx.groups.manager().runtime.unload(1)
    assert commit(broker, producer, 3) == [E.NOT_COORDINATOR]


def test_thousands_of_partitions_go_in_pieces(broker: HandlerBroker) -> None:
    broker.create("wide", 1500)
    cells = [
        Request.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=index)
        for index in range(1500)
    ]
    topics = [Request.TxnOffsetCommitRequestTopic(name="wide", partitions=cells)]
    assert commit(broker, added(broker), 3, topics=topics) == [0] * 1500

"""WriteTxnMarkers: an answer for each partition of each marker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.transaction_requests import FEW

Marker = m.WriteTxnMarkersRequest.WritableTxnMarker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, FEW) as running:
        running.create("a", 2)
        yield running


def marker(producer_id: int, *indexes: int, topic: str = "a", epoch: int = 1, coordinator: int = 1) -> Marker:
    topics = [m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=list(indexes))]
    return Marker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=True,
        coordinator_epoch=coordinator,
        topics=topics,
    )


def write(broker: HandlerBroker, *markers: Marker, version: int = 1) -> list[list[int]]:
    answer = broker.call(m.WriteTxnMarkersRequest(markers=list(markers)), version)
    return [
        [part.error_code for topic in result.topics for part in topic.partitions] for result in answer.markers
    ]


@pytest.mark.parametrize("version", range(3))
def test_every_version_writes(broker: HandlerBroker, version: int) -> None:
    assert write(broker, marker(1, 0, 1), marker(2, 0), version=version) == [[0, 0], [0]]
    replica = broker.ctx.replicas.get("a", 0)
    assert replica is not None
    assert replica.log.end_offset == 2


def test_no_marker_no_work(broker: HandlerBroker) -> None:
    assert write(broker) == []


def test_partitions_are_independent(broker: HandlerBroker) -> None:
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert write(broker, marker(1, 0, 7), marker(1, 0, topic="b")) == [[0, unknown], [unknown]]


def test_very_many_partitions(broker: HandlerBroker) -> None:
    indexes = [*range(1000), *range(1000)]  # in pieces, each once
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    expected = [0, 0, *[unknown] * 998] * 2
    assert write(broker, marker(1, *indexes), marker(2, *indexes)) == [expected, expected]
    replica = broker.ctx.replicas.get("a", 1)
    assert replica is not None
    assert replica.log.end_offset == 2


def test_old_coordinators_and_old_epochs(broker: HandlerBroker) -> None:
    assert write(broker, marker(1, 0, coordinator=5)) == [[0]]
    assert write(broker, marker(1, 0, coordinator=4)) == [[E.TRANSACTION_COORDINATOR_FENCED]]
    assert write(broker, marker(1, 0, epoch=0, coordinator=5)) == [[E.INVALID_PRODUCER_EPOCH]]


def test_offsets_of_a_group_whose_coordinator_is_not_here(broker: HandlerBroker) -> None:
    asked = marker(1, 0, topic="__consumer_offsets")
    assert write(broker, asked) == [[E.UNKNOWN_TOPIC_OR_PARTITION]]
    broker.call(m.FindCoordinatorRequest(key="g"), 3)
    assert write(broker, asked) == [[0]]
    broker.ctx.groups.manager().runtime.unload(0)
    assert write(broker, asked) == [[E.NOT_LEADER_OR_FOLLOWER]]

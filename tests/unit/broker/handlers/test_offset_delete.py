"""OffsetDelete: an error for each partition, or one for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, commit, coordinate, fetched, settle


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        running.create("t")
        yield running


def delete(broker: HandlerBroker, **topics: list[int]) -> tuple[int, list[tuple[str, int, int]]]:
    request = m.OffsetDeleteRequest
    partition = request.OffsetDeleteRequestPartition
    wanted = [
        request.OffsetDeleteRequestTopic(
            name=name, partitions=[partition(partition_index=i) for i in indexes]
        )
        for name, indexes in topics.items()
    ]
    answer = broker.call(request(group_id=GROUP, topics=wanted), 0)
    found = [(t.name, p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]
    return answer.error_code, found


def test_offsets_are_forgotten_one_by_one(broker: HandlerBroker) -> None:
    coordinate(broker)
    broker.call(commit("t", 5), 9)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(broker, t=[0, 1], unknown=[0]) == (
        0,
        [("t", 0, ErrorCode.NONE), ("t", 1, unknown), ("unknown", 0, unknown)],
    )
    assert fetched(broker, "t") == -1


def test_an_absent_group_is_told_of_whatever_is_asked(broker: HandlerBroker) -> None:
    coordinate(broker)
    for topics in ({"t": [0]}, {"unknown": [0]}, {}):
        assert delete(broker, **topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


def test_a_subscription_that_does_not_parse_may_mean_any_topic(broker: HandlerBroker) -> None:
    settle(broker)
    assert delete(broker, t=[0]) == (0, [("t", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)])


def test_without_the_topic_there_is_no_coordinator(broker: HandlerBroker) -> None:
    assert delete(broker, t=[0]) == (ErrorCode.NOT_COORDINATOR, [])

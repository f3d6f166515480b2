"""CreatePartitions: protocol.md 4.4, CP1."""

from __future__ import annotations

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

Request = m.CreatePartitionsRequest
Assignment = Request.CreatePartitionsAssignment


def grow(
    broker: HandlerBroker,
    *wanted: tuple[str, int, list[list[int]] | None],
    version: int = 3,
    timeout_ms: int = 1000,
    check: bool = False,
) -> list[tuple[str, int, str | None]]:
    topics = [
        Request.CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=None if lists is None else [Assignment(broker_ids=each) for each in lists],
        )
        for name, count, lists in wanted
    ]
    answer = broker.call(Request(topics=topics, timeout_ms=timeout_ms, validate_only=check), version)
    return [(each.name, each.error_code, each.error_message) for each in answer.results]


def count(broker: HandlerBroker, name: str) -> int:
    return len(broker.ctx.image.topics[name].partitions)


@pytest.mark.parametrize("version", range(4))
def test_a_topic_grows_at_every_version(broker: HandlerBroker, version: int) -> None:
    broker.create("a")
    assert grow(broker, ("a", 3, None), version=version) == [("a", 0, None)]
    assert count(broker, "a") == 3
    assert broker.ctx.replicas.get("a", 2) is not None


def test_what_is_refused(broker: HandlerBroker) -> None:
    broker.create("a", 3)
    broker.create("b")
    assert grow(broker, ("a", 3, None)) == [("a", 37, "Topic already has 3 partition(s).")]
    assert grow(broker, ("a", 1, None)) == [
        ("a", 37, "The topic a currently has 3 partition(s); 1 would not be an increase.")
    ]
    assert [each[:2] for each in grow(broker, ("nope", 2, None))] == [("nope", 3)]
    assert [each[:2] for each in grow(broker, ("a", 5, None), ("a", 6, None), ("b", 2, None))] == [
        ("a", 42),
        ("b", 0),
    ]
    assert (count(broker, "a"), count(broker, "b")) == (3, 2)


@pytest.mark.parametrize("lists", [[[1], [1]], [[9]], [[1, 1]], [[]]])
def test_a_bad_assignment_is_39(broker: HandlerBroker, lists: list[list[int]]) -> None:
    broker.create("a")
    assert [each[1] for each in grow(broker, ("a", 2, lists))] == [39]


def test_a_good_assignment(broker: HandlerBroker) -> None:
    broker.create("a")
    assert grow(broker, ("a", 2, [[1]])) == [("a", 0, None)]


def test_a_check_writes_nothing(broker: HandlerBroker) -> None:
    broker.create("a")
    assert grow(broker, ("a", 2, None), check=True) == [("a", 0, None)]
    assert count(broker, "a") == 1


def test_without_time_nothing_is_done_and_answered_7(broker: HandlerBroker) -> None:
    broker.create("a")
    assert [each[1] for each in grow(broker, ("a", 2, None), timeout_ms=0)] == [7]
    assert count(broker, "a") == 1

"""DescribeTopicPartitions: protocol.md 4.3, T1."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

Request = m.DescribeTopicPartitionsRequest
Response = m.DescribeTopicPartitionsResponse


def ask(
    broker: HandlerBroker, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> m.DescribeTopicPartitionsResponse:
    request = Request(
        topics=[Request.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return broker.call(request, 0)


def pages(answer: m.DescribeTopicPartitionsResponse) -> dict[str, list[int]]:
    return {topic.name: [p.partition_index for p in topic.partitions] for topic in answer.topics}


def next_of(answer: m.DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = answer.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.fixture
def filled(broker: HandlerBroker) -> HandlerBroker:
    broker.create("b", 3)
    broker.create("a", 2)
    return broker


def test_topics_come_sorted_with_errors_in_place(filled: HandlerBroker) -> None:
    answer = ask(filled, "b", "nope", "a", "a b")
    assert [(t.name, t.error_code) for t in answer.topics] == [("a", 0), ("a b", 17), ("b", 0), ("nope", 3)]
    assert next_of(answer) is None
    first = answer.topics[0]
    assert first.topic_id == filled.ctx.image.topics["a"].topic_id
    assert {topic.topic_authorized_operations for topic in answer.topics} == {3576}
    partition = first.partitions[0]
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [1], [])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


def test_without_a_list_all_topics(filled: HandlerBroker) -> None:
    assert pages(ask(filled)) == {"a": [0, 1], "b": [0, 1, 2]}


def test_pages_follow_the_cursor(filled: HandlerBroker) -> None:
    first = ask(filled, limit=3)
    assert (pages(first), next_of(first)) == ({"a": [0, 1], "b": [0]}, ("b", 1))
    second = ask(filled, limit=3, cursor=("b", 1))
    assert (pages(second), next_of(second)) == ({"b": [1, 2]}, None)
    exact = ask(filled, limit=2)
    assert (pages(exact), next_of(exact)) == ({"a": [0, 1]}, ("b", 0))
    least = ask(filled, limit=0)
    assert (pages(least), next_of(least)) == ({"a": [0]}, ("a", 1))


def test_the_broker_limits_pages_too(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {"max.request.partition.size.limit": "2"}) as broker:
        broker.create("a", 3)
        assert next_of(ask(broker)) == ("a", 2)


def test_a_cursor_outside_the_list_is_refused(filled: HandlerBroker) -> None:
    for names, cursor in ((("a", "b"), ("a", -1)), (("a",), ("nope", 0)), (("b",), ("a", 0))):
        answer = ask(filled, *names, cursor=cursor)
        assert [(t.name, t.error_code) for t in answer.topics] == [(name, 42) for name in names]
        assert next_of(answer) is None


def test_a_cursor_behind_the_last_partition_gives_an_empty_page(filled: HandlerBroker) -> None:
    answer = ask(filled, "a", cursor=("a", 7))
    assert (pages(answer), next_of(answer)) == ({"a": []}, None)

"""DeleteTopics: protocol.md 4.4, DT1."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

Request = m.DeleteTopicsRequest
State = Request.DeleteTopicState


def by_name(
    broker: HandlerBroker, version: int, *names: str, timeout_ms: int = 1000
) -> list[tuple[object, int]]:
    answer = broker.call(Request(topic_names=list(names), timeout_ms=timeout_ms), version)
    return [(each.name, each.error_code) for each in answer.responses]


def by_state(broker: HandlerBroker, *states: object) -> list[tuple[object, int]]:
    answer = broker.call(Request(topics=list(states), timeout_ms=60_000), 6)
    return [(each.name, each.error_code) for each in answer.responses]


@pytest.mark.parametrize("version", range(6))
def test_by_name_at_every_version(broker: HandlerBroker, version: int) -> None:
    broker.create("a")
    assert by_name(broker, version, "a", "b") == [("a", 0), ("b", 3)]
    assert "a" not in broker.ctx.image.topics
    assert broker.ctx.replicas.get("a", 0) is None


def test_v6_by_name_and_by_id(broker: HandlerBroker) -> None:
    broker.create("a")
    other = broker.create("b")
    unknown = bytes(15) + b"1"
    assert by_state(
        broker,
        State(name="a"),
        State(name=None, topic_id=other.topic_id),
        State(name=None, topic_id=unknown),
        State(name=None),
        State(name="c", topic_id=unknown),
    ) == [("a", 0), ("b", 0), (None, 100), (None, 42), ("c", 42)]
    assert broker.ctx.image.topics == {}


def test_one_given_twice_is_refused_once(broker: HandlerBroker) -> None:
    broker.create("a")
    assert by_name(broker, 5, "a", "a") == [("a", 42)]
    assert "a" in broker.ctx.image.topics


def test_messages_from_v5_on(broker: HandlerBroker) -> None:
    answer = broker.call(Request(topic_names=["nope"], timeout_ms=60_000), 5)
    assert answer.responses[0].error_message == "This server does not host this topic-partition."


def test_without_time_it_stays_and_answered_7(broker: HandlerBroker) -> None:
    broker.create("a")
    assert by_name(broker, 5, "a", timeout_ms=0) == [("a", 7)]
    assert "a" in broker.ctx.image.topics


def test_deletion_can_be_switched_off(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {"delete.topic.enable": "false"}) as broker:
        created = broker.create("a")
        assert by_name(broker, 2, "a") == [("a", 42)]
        assert by_name(broker, 3, "a") == [("a", 73)]
        assert by_state(broker, State(name=None, topic_id=created.topic_id)) == [(None, 73)]
        assert "a" in broker.ctx.image.topics


def test_a_topic_made_anew_is_empty_and_has_another_id(broker: HandlerBroker) -> None:
    first = broker.create("a")
    broker.produce("a", 0, [(1, b"x")])
    by_name(broker, 5, "a")
    second = broker.create("a")
    assert first.topic_id != second.topic_id
    found = broker.ctx.replicas.get("a", 0)
    assert found is not None
    assert found.log.end_offset == 0

"""AlterConfigs: protocol.md 4.5, AC1 and AC2."""

from __future__ import annotations

import pytest

from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.alterations import overrides, replace

TOPIC, BROKER, LOGGER = 2, 4, 8


@pytest.mark.parametrize("version", range(3))
def test_ac1_all_overrides_are_replaced(broker: HandlerBroker, version: int) -> None:
    broker.create("t", configs={"retention.ms": "1", "segment.ms": "2"})
    assert replace(broker, [(TOPIC, "t", [("retention.ms", "5")])], version) == [(0, None)]
    assert overrides(broker, "t") == {"retention.ms": "5"}
    assert replace(broker, [(TOPIC, "t", [])], version) == [(0, None)]
    assert overrides(broker, "t") == {}


@pytest.mark.parametrize(
    ("kind", "name", "values", "error", "message"),
    [
        (TOPIC, "t", [("retention.ms", None)], 42, "Null value not supported for : retention.ms"),
        (
            TOPIC,
            "t",
            [("retention.ms", "1"), ("retention.ms", "2")],
            42,
            "Error due to duplicate config keys",
        ),
        (TOPIC, "t", [("foo", "1")], 40, "Unknown topic config name: foo"),
        (TOPIC, "t", [("retention.ms", "x")], 40, "Not a number of type LONG"),
        (TOPIC, "nope", [], 3, "The topic 'nope' does not exist."),
        (TOPIC, "a b", [], 17, "Topic name is invalid"),
        (
            BROKER,
            "1",
            [("num.partitions", "3")],
            42,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (BROKER, "1", [("log.retention.ms", "x")], 42, "Not a number of type LONG"),
        (BROKER, "", [("cordoned.log.dirs", "")], 42, "at default cluster level"),
        (BROKER, "9", [], 42, "Unexpected broker id, expected 1, but received 9"),
        (LOGGER, "1", [("root", "INFO")], 42, "Unknown resource type 8"),
        (64, "1", [], 42, "Unknown resource type 64"),
    ],
)
def test_ac2_what_is_refused(
    broker: HandlerBroker,
    kind: int,
    name: str,
    values: list[tuple[str, str | None]],
    error: int,
    message: str,
) -> None:
    broker.create("t", configs={"segment.ms": "2"})
    ((found, text),) = replace(broker, [(kind, name, values)])
    assert found == error
    assert message in (text or "")
    assert overrides(broker, "t") == {"segment.ms": "2"}


def test_ac2_a_resource_given_twice(broker: HandlerBroker) -> None:
    broker.create("t")
    answers = replace(broker, [(TOPIC, "t", [("retention.ms", "1")]), (TOPIC, "t", [])])
    assert [code for code, _ in answers] == [42, 42]


def test_a_check_writes_nothing(broker: HandlerBroker) -> None:
    broker.create("t")
    assert replace(broker, [(TOPIC, "t", [("retention.ms", "1")])], check=True) == [(0, None)]
    assert overrides(broker, "t") == {}
    assert replace(broker, [(BROKER, "1", [("message.max.bytes", "7")])]) == [(0, None)]
    assert broker.ctx.config.integer("message.max.bytes") == 7

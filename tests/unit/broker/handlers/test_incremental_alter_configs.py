"""IncrementalAlterConfigs: protocol.md 4.5 (IC1 to IC3) and section 7."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.alterations import APPEND, DELETE, SET, SUBTRACT, alter, alter_all, overrides

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32


@pytest.mark.parametrize("version", [0, 1])
def test_ic1_set_and_delete(broker: HandlerBroker, version: int) -> None:
    broker.create("t")
    changes = [("retention.ms", SET, " 1000 "), ("cleanup.policy", SET, "compact")]
    assert alter_all(broker, [(TOPIC, "t", changes)], version) == [(0, None)]
    assert overrides(broker, "t") == {"retention.ms": " 1000 ", "cleanup.policy": "compact"}
    found = broker.ctx.replicas.get("t", 0)
    assert found is not None
    assert (found.log.config.retention_ms, found.log.config.compacted) == (1000, True)
    assert alter(broker, TOPIC, "t", ("retention.ms", DELETE, None)) == (0, None)
    assert found.log.config.retention_ms == 604_800_000


def test_ic1_append_and_subtract(broker: HandlerBroker) -> None:
    broker.create("t")
    assert alter(broker, TOPIC, "t", ("cleanup.policy", APPEND, "compact,delete")) == (0, None)
    assert overrides(broker, "t") == {"cleanup.policy": "delete,compact"}
    assert alter(broker, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete,absent")) == (0, None)
    assert overrides(broker, "t") == {"cleanup.policy": "compact"}
    assert alter(broker, TOPIC, "t", ("cleanup.policy", SUBTRACT, "compact")) == (0, None)
    assert overrides(broker, "t") == {"cleanup.policy": ""}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ([("retention.ms", APPEND, "1")], 40, "because its type is not LIST."),
        ([("retention.ms", SET, "x")], 40, "Not a number of type LONG"),
        ([("foo", SET, "1")], 40, "Unknown topic config name: foo"),
        ([("cleanup.policy", APPEND, "foo")], 40, "String must be one of: compact, delete"),
        ([("retention.ms", SET, None)], 42, "Null value not supported for : retention.ms"),
        ([("cleanup.policy", APPEND, None)], 42, "Null value not supported for : cleanup.policy"),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], 42, "Error due to duplicate config keys"),
        ([("retention.ms", 7, "1")], -1, ""),
        ([("retention.ms", SET, "5"), ("segment.bytes", SET, "x")], 40, "segment.bytes"),
    ],
)
def test_what_is_refused_changes_nothing(
    broker: HandlerBroker, changes: list[tuple[str, int, str | None]], error: int, message: str
) -> None:
    broker.create("t")
    found, text = alter(broker, TOPIC, "t", *changes)
    assert found == error
    assert message in (text or "")
    assert overrides(broker, "t") == {}


def test_deleting_what_is_not_set_is_fine(broker: HandlerBroker) -> None:
    broker.create("t")
    assert alter(broker, TOPIC, "t", ("retention.ms", DELETE, None), ("foo", DELETE, None)) == (0, None)


def test_ic2_resources_are_independent(broker: HandlerBroker) -> None:
    broker.create("a")
    broker.create("b")
    answers = alter_all(
        broker,
        [
            (TOPIC, "a", [("retention.ms", SET, "x")]),
            (TOPIC, "b", [("retention.ms", SET, "5")]),
            (TOPIC, "nope", [("retention.ms", SET, "5")]),
            (TOPIC, "a b", [("retention.ms", SET, "5")]),
            (TOPIC, "", [("retention.ms", SET, "5")]),
            (64, "x", []),
            (BROKER, "2", [("log.retention.ms", SET, "5")]),
            (BROKER, "x", [("log.retention.ms", SET, "5")]),
        ],
    )
    assert [code for code, _ in answers] == [40, 0, 3, 17, 42, 42, 42, 42]
    assert answers[1][1] is None
    assert answers[2][1] == "The topic 'nope' does not exist."
    assert answers[4][1] == "Default topic resources are not allowed."
    assert answers[5][1] == "Unknown resource type 64"
    assert answers[6][1] == "Unexpected broker id, expected 1, but received 2"
    assert answers[7][1] == "Node id must be an integer, but it is: x"
    assert overrides(broker, "b") == {"retention.ms": "5"}


def test_a_resource_given_twice_is_refused_at_each_mention(broker: HandlerBroker) -> None:
    broker.create("t")
    twice = (42, "Each resource must appear at most once.")
    changes = [("retention.ms", SET, "5")]
    assert alter_all(broker, [(TOPIC, "t", changes), (TOPIC, "t", changes)]) == [twice, twice]
    assert overrides(broker, "t") == {}


def test_a_check_writes_nothing(broker: HandlerBroker) -> None:
    broker.create("t")
    assert alter(broker, TOPIC, "t", ("retention.ms", SET, "5"), check=True) == (0, None)
    assert alter(broker, TOPIC, "t", ("retention.ms", SET, "x"), check=True)[0] == 40
    assert overrides(broker, "t") == {}


def test_values_of_the_broker_take_effect_and_survive(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        broker.create("t")
        assert alter(broker, BROKER, "", ("message.max.bytes", SET, "2000")) == (0, None)
        found = broker.ctx.replicas.get("t", 0)
        assert found is not None
        assert found.log.config.max_message_bytes == 2000
        assert alter(broker, BROKER, "1", ("message.max.bytes", SET, "3000")) == (0, None)
        assert found.log.config.max_message_bytes == 3000
        assert broker.ctx.config.integer("message.max.bytes") == 3000
        tree = broker.tree
    with HandlerBroker(tmp_path, tree=tree) as again:
        found = again.ctx.replicas.get("t", 0)
        assert found is not None
        assert found.log.config.max_message_bytes == 3000
        assert alter(again, BROKER, "1", ("message.max.bytes", DELETE, None)) == (0, None)
        assert found.log.config.max_message_bytes == 2000


def test_metrics_subscriptions_survive(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        assert alter(broker, 16, "a b/c", ("metrics", SET, "x"), ("interval.ms", SET, "5000")) == (0, None)
        assert alter(broker, 16, "a b/c", ("metrics", APPEND, "y"))[0] == 40
        assert alter(broker, 16, "a b/c", ("interval.ms", SET, "5"))[0] == 42
        tree = broker.tree
    with HandlerBroker(tmp_path, tree=tree) as again:
        assert overrides(again, "a b/c") == {"metrics": "x", "interval.ms": "5000"}


def test_settings_of_groups_survive(tmp_path: Path) -> None:
    timeout = "consumer.session.timeout.ms"
    with HandlerBroker(tmp_path) as broker:
        assert alter(broker, GROUP, "a b/c", (timeout, SET, "50000")) == (0, None)
        assert alter(broker, GROUP, "a b/c", (timeout, SET, "60001"))[0] == 40
        assert alter(broker, GROUP, "a b/c", (timeout, APPEND, "1"))[0] == 40
        assert alter(broker, GROUP, "a b/c", ("streams.rack.aware.assignment.tags", APPEND, "a"))[0] == 40
        assert alter(broker, GROUP, "a b/c", ("no.such.key", DELETE, None)) == (0, None)
        assert alter(broker, GROUP, "", (timeout, SET, "50000")) == (
            42,
            "Default group resources are not allowed.",
        )
        tree = broker.tree
    with HandlerBroker(tmp_path, tree=tree) as again:
        assert overrides(again, "a b/c") == {timeout: "50000"}
        assert again.ctx.group_configs.integer("a b/c", timeout) == 50_000
        assert alter(again, GROUP, "a b/c", (timeout, DELETE, None)) == (0, None)
        assert again.ctx.group_configs.integer("a b/c", timeout) == 45_000
        assert overrides(again, "a b/c") == {}


def test_keys_of_the_broker_that_cannot_change(broker: HandlerBroker) -> None:
    assert alter(broker, BROKER, "1", ("num.partitions", SET, "3")) == (
        42,
        "Cannot update these configs dynamically: [num.partitions]",
    )
    assert alter(broker, BROKER, "", ("cordoned.log.dirs", SET, "/x"))[0] == 42
    assert alter(broker, BROKER, "1", ("log.cleanup.policy", APPEND, "compact")) == (0, None)
    assert broker.ctx.config.names("log.cleanup.policy") == ("delete", "compact")


def test_ic3_levels_of_loggers(broker: HandlerBroker) -> None:
    logger = logging.getLogger("ottla.test.alter")
    logger.setLevel(logging.NOTSET)
    assert alter(broker, LOGGER, "1", ("ottla.test.alter", SET, "DEBUG"), check=True) == (0, None)
    assert logger.level == logging.NOTSET
    assert alter(broker, LOGGER, "1", ("ottla.test.alter", SET, "DEBUG")) == (0, None)
    assert logger.level == logging.DEBUG
    assert alter(broker, LOGGER, "1", ("ottla.test.alter", DELETE, None)) == (0, None)
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("1", ("root", SET, None), 42, "Null value not supported for : root"),
        ("1", ("root", SET, "LOUD"), 40, "Cannot set the log level of root to LOUD"),
        ("1", ("ottla.no.such.logger", SET, "INFO"), 40, "Logger ottla.no.such.logger does not exist!"),
        ("1", ("root", DELETE, None), 42, "Removing the log level of the root logger is not allowed"),
        ("1", ("root", APPEND, "INFO"), 42, "APPEND operation is not allowed for the BROKER_LOGGER resource"),
        ("2", ("root", SET, "INFO"), 42, "Unexpected node id. Expected 1, but received 2"),
        ("", ("root", SET, "INFO"), 42, "Node id must be an integer, but it is: "),
    ],
)
def test_levels_that_are_refused(
    broker: HandlerBroker, name: str, change: tuple[str, int, str | None], error: int, message: str
) -> None:
    found, text = alter(broker, LOGGER, name, change)
    assert found == error
    assert (text or "").startswith(message)

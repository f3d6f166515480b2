"""DescribeConfigs: protocol.md 4.5, DC1 to DC5, against what 4.4.0 answered to the same requests."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.alterations import SET, alter

Request = m.DescribeConfigsRequest
TOPIC, BROKER, LOGGER = 2, 4, 8


def describe(
    broker: HandlerBroker,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    version: int = 4,
    synonyms: bool = True,
) -> m.DescribeConfigsResponse.DescribeConfigsResult:
    asked = Request.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    answer = broker.call(Request(resources=[asked], include_synonyms=synonyms and version > 0), version)
    return answer.results[0]


def by_name(
    result: m.DescribeConfigsResponse.DescribeConfigsResult,
) -> dict[str, m.DescribeConfigsResponse.DescribeConfigsResourceResult]:
    return {each.name: each for each in result.configs}


@pytest.mark.parametrize(
    ("kind", "name", "error", "message"),
    [
        (TOPIC, "nope", 3, ""),
        (TOPIC, "a b", 17, "Topic name is invalid: 'a b' contains one or more characters other than"),
        (TOPIC, "", 17, "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "7", 42, "Unexpected broker id, expected 1 or empty string, but received 7"),
        (BROKER, "x", 42, "Broker id must be an integer, but it is: x"),
        (LOGGER, "", 42, "Broker id must not be empty"),
        (LOGGER, "7", 42, "Unexpected broker id"),
        (16, "", 42, "Client metrics subscription name must not be empty"),
        (32, "", 42, "Group name must not be empty"),
        (0, "x", 42, "Unsupported resource type 0"),
    ],
)
def test_dc1_resources(broker: HandlerBroker, kind: int, name: str, error: int, message: str) -> None:
    result = describe(broker, kind, name)
    assert result.error_code == error
    assert (result.error_message or "").startswith(message)
    assert (result.resource_type, result.resource_name, result.configs) == (kind, name, [])


@pytest.mark.parametrize("version", range(5))
def test_a_topic_at_every_version(broker: HandlerBroker, version: int) -> None:
    broker.create("t", configs={"retention.ms": "5000"})
    result = describe(broker, TOPIC, "t", version=version)
    assert (result.error_code, result.error_message) == (0, "")
    found = by_name(result)
    assert len(found) == 37
    retention = found["retention.ms"]
    assert (retention.value, retention.read_only, retention.is_sensitive) == ("5000", False, False)
    policy = found["cleanup.policy"]
    if version == 0:
        assert (retention.is_default, policy.is_default) == (False, True)
    else:
        assert (retention.config_source, policy.config_source) == (1, 5)
        assert [(s.name, s.value, s.source) for s in policy.synonyms] == [("log.cleanup.policy", "delete", 5)]
        assert [(s.name, s.value, s.source) for s in retention.synonyms] == [("retention.ms", "5000", 1)]
    assert (retention.config_type, policy.config_type) == ((5, 7) if version >= 3 else (0, 0))


def test_dc2_keys(broker: HandlerBroker) -> None:
    broker.create("t")
    assert list(by_name(describe(broker, TOPIC, "t", ["retention.ms", "foo"]))) == ["retention.ms"]
    assert len(describe(broker, TOPIC, "t", []).configs) == 37
    assert describe(broker, TOPIC, "t", ["retention.ms"], synonyms=False).configs[0].synonyms == []


def test_dc4_sources_in_the_order_of_precedence(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {"message.max.bytes": "100"}) as broker:
        broker.create("t", configs={"max.message.bytes": "400"})
        alter(broker, BROKER, "", ("message.max.bytes", SET, "200"))
        alter(broker, BROKER, "1", ("message.max.bytes", SET, "300"))
        topic = by_name(describe(broker, TOPIC, "t"))["max.message.bytes"]
        assert (topic.value, topic.config_source) == ("400", 1)
        assert [(s.name, s.value, s.source) for s in topic.synonyms] == [
            ("max.message.bytes", "400", 1),
            ("message.max.bytes", "300", 2),
            ("message.max.bytes", "200", 3),
            ("message.max.bytes", "100", 4),
            ("message.max.bytes", "1048588", 5),
        ]
        own = by_name(describe(broker, BROKER, "1"))["message.max.bytes"]
        assert (own.value, own.config_source, len(own.synonyms)) == ("300", 2, 4)
        default = by_name(describe(broker, BROKER, ""))
        assert list(default) == ["message.max.bytes"]
        assert (default["message.max.bytes"].value, default["message.max.bytes"].config_source) == ("200", 3)
        assert [s.source for s in default["message.max.bytes"].synonyms] == [3]


def test_dc5_what_is_shown_of_a_broker(tmp_path: Path) -> None:
    static = {"log.retention.hours": "100", "unknown.key": "secret", "log.dirs": "/somewhere"}
    with HandlerBroker(tmp_path, static) as broker:
        found = by_name(describe(broker, BROKER, "1"))
    assert (found["unknown.key"].value, found["unknown.key"].is_sensitive) == (None, True)
    assert (found["unknown.key"].read_only, found["unknown.key"].config_type) == (True, 0)
    assert found["unknown.key"].synonyms[0].value is None
    password = found["ssl.key.password"]
    assert (password.value, password.is_sensitive, password.config_type) == (None, True, 9)
    hours = found["log.retention.hours"]
    assert (hours.value, hours.read_only, hours.config_source) == ("100", True, 4)
    assert [(s.value, s.source) for s in hours.synonyms] == [("100", 4), ("168", 5)]
    milliseconds = found["log.retention.ms"]
    assert (milliseconds.value, milliseconds.read_only, milliseconds.config_source) == (None, False, 5)
    assert milliseconds.synonyms == []
    assert (found["node.id"].value, found["broker.id"].value) == ("1", "1")
    assert "zookeeper.connect" not in found
    assert "log.initial.task.delay.ms" not in found


def test_keys_that_4_0_dropped_are_shown_where_they_are_set(broker: HandlerBroker) -> None:
    broker.create("t", configs={"message.downconversion.enable": "false"})
    assert len(describe(broker, TOPIC, "t").configs) == 38


def test_loggers(broker: HandlerBroker) -> None:
    logging.getLogger("ottla.test.describe").setLevel(logging.WARNING)
    found = by_name(describe(broker, LOGGER, "1"))
    assert (found["ottla.test.describe"].value, found["ottla.test.describe"].config_source) == ("WARN", 6)
    assert "root" in found


@pytest.mark.parametrize(
    ("kind", "name", "key"),
    [
        (TOPIC, "t", "retention.ms"),
        (BROKER, "1", "num.partitions"),
        (16, "m", "match"),
        (32, "g", "share.isolation.level"),
    ],
)
def test_what_a_key_is_for_on_request(broker: HandlerBroker, kind: int, name: str, key: str) -> None:
    broker.create("t")
    asked = Request.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=[key, "no.such.key"]
    )
    for wanted in (False, True):
        request = Request(resources=[asked], include_documentation=wanted)
        (entry,) = broker.call(request, 4).results[0].configs
        assert entry.name == key
        assert bool(entry.documentation) == wanted


def test_a_metrics_subscription_has_defaults_whether_it_exists_or_not(broker: HandlerBroker) -> None:
    found = by_name(describe(broker, 16, "m"))
    assert {name: (e.value, e.config_source, e.config_type, e.synonyms) for name, e in found.items()} == {
        "interval.ms": ("300000", 5, 3, []),
        "match": ("", 5, 7, []),
        "metrics": ("", 5, 7, []),
    }
    assert alter(broker, 16, "m", ("metrics", SET, "a,b")) == (0, None)
    entry = by_name(describe(broker, 16, "m", ["metrics"]))["metrics"]
    assert (entry.value, entry.config_source, entry.read_only, entry.is_sensitive) == ("a,b", 7, False, False)
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [("metrics", "a,b", 7)]


def test_a_group_has_the_brokers_values_and_then_its_own(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {"group.share.delivery.count.limit": "6"}) as broker:
        found = by_name(describe(broker, 32, "g/1"))
        assert len(found) == 21
        entry = found["share.delivery.count.limit"]
        assert (entry.value, entry.config_source, entry.config_type, entry.read_only) == ("6", 4, 3, False)
        behind = [("group.share.delivery.count.limit", "6", 4), ("group.share.delivery.count.limit", "5", 5)]
        assert [(s.name, s.value, s.source) for s in entry.synonyms] == behind
        changes = [
            ("share.delivery.count.limit", SET, " 7"),
            ("share.assignor.offload.enable", SET, " False"),
        ]
        assert alter(broker, 32, "g/1", *changes) == (0, None)
        found = by_name(describe(broker, 32, "g/1"))
        entry = found["share.delivery.count.limit"]
        assert (entry.value, entry.config_source) == ("7", 8)
        assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
            ("share.delivery.count.limit", "7", 8),
            *behind,
        ]
        assert next(iter(found)) == "share.assignor.offload.enable"  # internal, and now it is set
        assert found["share.assignor.offload.enable"].value == " False"
        assert len(by_name(describe(broker, 32, "g"))) == 21


def test_a_resource_that_is_named_often_is_answered_once_and_many_are_all_answered(
    broker: HandlerBroker,
) -> None:
    names = ["gone-0", *[f"gone-{i}" for i in range(50)]] * 3
    asked = [Request.DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in names]
    results = broker.call(Request(resources=asked), 4).results
    assert [each.resource_name for each in results] == [f"gone-{i}" for i in range(50)]
    assert {each.error_code for each in results} == {3}

"""What may change while the broker runs: 4.4.0's answers."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.rules import DynamicConfigRules
from broker.config.topic_configs import TopicConfigs
from protocol.errors import ErrorCode
from replication.metadata.configs import ConfigRefused, ConfigResource, ConfigType

TOPIC = ConfigResource(ConfigType.TOPIC, "t")
BROKER = ConfigResource(ConfigType.BROKER, "1")
DEFAULT = ConfigResource(ConfigType.BROKER, "")
GROUP = ConfigResource(ConfigType.GROUP, "g")
SUBSCRIPTION = ConfigResource(ConfigType.CLIENT_METRICS, "m")


def rules(**static: str) -> DynamicConfigRules:
    config = BrokerConfig({"node.id": "1", **{k.replace("_", "."): v for k, v in static.items()}})
    return DynamicConfigRules(config, TopicConfigs(config))


@pytest.mark.parametrize(
    ("resource", "values", "error", "message"),
    [
        (TOPIC, {"foo": "1"}, ErrorCode.INVALID_CONFIG, "Unknown topic config name: foo"),
        (TOPIC, {"retention.ms": "x"}, ErrorCode.INVALID_CONFIG, "Not a number of type LONG"),
        (
            BROKER,
            {"num.partitions": "3"},
            ErrorCode.INVALID_REQUEST,
            r"Cannot update these configs dynamically: \[num.partitions\]",
        ),
        (BROKER, {"log.retention.ms": "x"}, ErrorCode.INVALID_REQUEST, "Not a number of type LONG"),
        (BROKER, {"log.retention.ms": "0"}, ErrorCode.INVALID_REQUEST, "must be unlimited"),
        (BROKER, {"log.segment.bytes": "10"}, ErrorCode.INVALID_REQUEST, "at least 1048576"),
        (BROKER, {"ssl.keystore.type": "PEM"}, ErrorCode.INVALID_REQUEST, "only per-listener using the"),
        (
            BROKER,
            {"listener.name.plaintext.ssl.keystore.type": "PEM"},
            ErrorCode.INVALID_REQUEST,
            "nothing yet that would act",
        ),
        (BROKER, {"listeners": "PLAINTEXT://x:1"}, ErrorCode.INVALID_REQUEST, "nothing yet that would act"),
        (BROKER, {"num.io.threads": "100"}, ErrorCode.INVALID_REQUEST, "not be greater than double"),
        (BROKER, {"num.io.threads": "2"}, ErrorCode.INVALID_REQUEST, "at least half the current value 8"),
        (BROKER, {"log.cleaner.threads": "5"}, ErrorCode.INVALID_REQUEST, "double the current value 1"),
        (BROKER, {"cordoned.log.dirs": "/x"}, ErrorCode.INVALID_REQUEST, "Missing entries : /x"),
        (BROKER, {"max.connections.per.ip.overrides": "abc"}, ErrorCode.INVALID_REQUEST, "HOST:COUNT"),
        (
            DEFAULT,
            {"cordoned.log.dirs": ""},
            ErrorCode.INVALID_REQUEST,
            r"at default cluster level, broker id must be specified: \[cordoned.log.dirs\]",
        ),
        (GROUP, {"metrics": "x"}, ErrorCode.INVALID_CONFIG, "Unknown group config name: metrics"),
        (GROUP, {"consumer.session.timeout.ms": "1"}, ErrorCode.INVALID_CONFIG, "range 45000 to 60000"),
        (
            ConfigResource(ConfigType.BROKER_LOGGER, "1"),
            {"root": "INFO"},
            ErrorCode.INVALID_REQUEST,
            "cannot be altered",
        ),
        (
            SUBSCRIPTION,
            {"metrics": "x", "foo": "1"},
            ErrorCode.INVALID_REQUEST,
            "Unknown client metrics configuration: foo",
        ),
    ],
)
def test_what_is_refused(
    resource: ConfigResource, values: dict[str, str], error: ErrorCode, message: str
) -> None:
    with pytest.raises(ConfigRefused, match=message) as refused:
        rules().validate(resource, values)
    assert refused.value.error == error


@pytest.mark.parametrize(
    ("resource", "values"),
    [
        (TOPIC, {"retention.ms": "1000", "cleanup.policy": "compact,delete"}),
        (BROKER, {"log.retention.ms": "-5", "message.max.bytes": "10"}),
        (BROKER, {"num.io.threads": "10"}),
        (BROKER, {"a.plugins.own.key": "1"}),
        (DEFAULT, {"log.cleanup.policy": "compact"}),
        (DEFAULT, {}),
        (SUBSCRIPTION, {"metrics": "x,y"}),
    ],
)
def test_what_is_taken(resource: ConfigResource, values: dict[str, str]) -> None:
    rules().validate(resource, values)


def test_lists_can_be_appended_to() -> None:
    assert rules().is_list(TOPIC, "cleanup.policy")
    assert not rules().is_list(TOPIC, "retention.ms")
    assert not rules().is_list(TOPIC, "log.cleanup.policy")
    assert rules().is_list(BROKER, "log.cleanup.policy")
    assert not rules().is_list(GROUP, "streams.rack.aware.assignment.tags")  # Kafka forgets it


def test_an_append_starts_from_what_is_in_force() -> None:
    asked = rules(log_cleanup_policy="compact", message_max_bytes="77")
    assert asked.inherited(TOPIC, "cleanup.policy") == "compact"
    assert asked.inherited(BROKER, "log.cleanup.policy") == "compact"
    assert asked.inherited(DEFAULT, "message.max.bytes") == "77"
    assert asked.inherited(TOPIC, "foo") is None
    assert asked.inherited(BROKER, "foo") is None

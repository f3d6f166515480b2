"""Precedence of a broker key, unit fallbacks, synonyms, ids."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig, ConfigSource, Synonym
from broker.config.values import ConfigError


def test_precedence_is_broker_default_static_built_in() -> None:
    config = BrokerConfig({"message.max.bytes": "1000"})
    assert config.integer("num.partitions") == 1
    assert config.integer("message.max.bytes") == 1000
    config.apply_dynamic({"message.max.bytes": "2000"}, {})
    assert config.integer("message.max.bytes") == 2000
    config.apply_dynamic({"message.max.bytes": "2000"}, {"message.max.bytes": "3000"})
    assert config.integer("message.max.bytes") == 3000
    assert config.synonyms("message.max.bytes") == [
        Synonym("message.max.bytes", "3000", ConfigSource.DYNAMIC_BROKER_CONFIG),
        Synonym("message.max.bytes", "2000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        Synonym("message.max.bytes", "1000", ConfigSource.STATIC_BROKER_CONFIG),
        Synonym("message.max.bytes", "1048588", ConfigSource.DEFAULT_CONFIG),
    ]
    config.apply_dynamic({}, {})
    assert config.integer("message.max.bytes") == 1000


def test_a_wrong_static_value_is_an_error_and_a_wrong_dynamic_one_is_passed_over() -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        BrokerConfig({"num.partitions": "many"})
    config = BrokerConfig({"message.max.bytes": "1000"})
    config.apply_dynamic({}, {"message.max.bytes": "many"})
    assert config.integer("message.max.bytes") == 1000


def test_subscribers_hear_which_keys_changed() -> None:
    config = BrokerConfig({})
    heard: list[frozenset[str]] = []
    config.subscribe(heard.append)
    config.apply_dynamic({"message.max.bytes": "2000"}, {"max.connections": "5"})
    config.apply_dynamic({"message.max.bytes": "2000"}, {"max.connections": "5"})
    config.apply_dynamic({"message.max.bytes": "2000"}, {})
    assert heard == [frozenset({"message.max.bytes", "max.connections"}), frozenset({"max.connections"})]


@pytest.mark.parametrize(
    ("static", "expected"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.hours": "1", "log.retention.ms": "5"}, 5),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.ms": "-7"}, -1),
    ],
)
def test_retention_takes_the_finest_unit_that_is_set(static: dict[str, str], expected: int) -> None:
    assert BrokerConfig(static).duration_ms("log.retention.ms") == expected


def test_roll_and_flush_fall_back_too() -> None:
    config = BrokerConfig({"log.roll.hours": "2", "log.flush.scheduler.interval.ms": "9"})
    assert config.duration_ms("log.roll.ms") == 7_200_000
    assert config.duration_ms("log.roll.jitter.ms") == 0
    assert config.duration_ms("log.flush.interval.ms") == 9


def test_synonyms_of_4_4_leave_the_units_out_but_the_source_does_not() -> None:
    config = BrokerConfig({"log.retention.hours": "100"})
    assert config.synonyms("log.retention.ms") == []
    assert config.source_of("log.retention.ms") == ConfigSource.STATIC_BROKER_CONFIG
    assert config.source_of("log.roll.ms") == ConfigSource.DEFAULT_CONFIG


def test_a_listener_key_lists_the_plain_one_behind_it() -> None:
    config = BrokerConfig({"listener.name.a.ssl.keystore.type": "PEM"})
    assert [(s.name, s.value) for s in config.synonyms("listener.name.a.ssl.keystore.type")] == [
        ("listener.name.a.ssl.keystore.type", "PEM"),
        ("ssl.keystore.type", "JKS"),
    ]


def test_the_node_id() -> None:
    assert BrokerConfig({"broker.id": "7"}).node_id == 7
    assert BrokerConfig({"node.id": "3", "broker.id": "3"}).configured_node_id == 3
    assert BrokerConfig({}).configured_node_id is None


def test_an_id_is_configured_or_remembered_or_generated() -> None:
    for static, remembered, expected in (
        ({"broker.id": "7"}, None, 7),
        ({"node.id": "7"}, 9, 7),
        ({}, 9, 9),
        ({}, None, 1001),
        ({"reserved.broker.max.id": "50"}, None, 51),
    ):
        config = BrokerConfig(static)
        config.settle_node_id(remembered)
        assert config.node_id == config.integer("broker.id") == config.integer("node.id") == expected


def test_log_dirs_win_over_log_dir() -> None:
    assert BrokerConfig({}).log_dirs == ("/tmp/kafka-logs",)
    assert BrokerConfig({"log.dir": "/a"}).log_dirs == ("/a",)
    assert BrokerConfig({"log.dir": "/a", "log.dirs": "/b, /c"}).log_dirs == ("/b", "/c")


def test_typed_getters() -> None:
    config = BrokerConfig({"broker.rack": "r1"})
    assert config.text("broker.rack") == "r1"
    assert config.text("authorizer.class.name") == ""
    assert config.number("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.flag("auto.create.topics.enable") is True
    assert config.names("advertised.listeners") == ()
    assert config.optional_integer("log.roll.ms") is None
    with pytest.raises(KeyError):
        config["no.such.key"]

"""Settings in force for a topic."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig, ConfigSource, Synonym
from broker.config.definitions import TOPIC_KEYS
from broker.config.topic_configs import TopicConfigs
from broker.config.values import ConfigError


def topics(**static: str) -> TopicConfigs:
    return TopicConfigs(BrokerConfig({name.replace("_", "."): value for name, value in static.items()}))


def test_the_override_wins_over_the_broker_key() -> None:
    settings = topics(message_max_bytes="500")
    assert settings.value({}, "max.message.bytes") == 500
    assert settings.value({"max.message.bytes": "9"}, "max.message.bytes") == 9
    assert settings.value({}, "segment.bytes") == 1 << 30


def test_units_of_the_broker_reach_the_topic() -> None:
    settings = topics(log_retention_hours="1", log_roll_hours="2")
    assert settings.value({}, "retention.ms") == 3_600_000
    assert settings.value({}, "segment.ms") == 7_200_000


def test_keys_without_a_broker_key_have_their_own_default() -> None:
    assert topics().value({}, "remote.storage.enable") is False
    assert topics().value({}, "follower.replication.throttled.replicas") == ()


def test_a_stored_value_that_no_longer_parses_is_passed_over() -> None:
    assert topics().value({"segment.bytes": "14"}, "segment.bytes") == 1 << 30


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"foo": "bar"}, "Unknown topic config name: foo"),
        ({"retention.ms": "x"}, "Not a number of type LONG"),
        (
            {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"},
            r"conflict topic config setting min.compaction.lag.ms \(100\) > max.compaction.lag.ms \(50\)",
        ),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled in the broker"),
    ],
)
def test_what_is_refused(overrides: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        topics().validate(overrides)


def test_keys_that_4_0_dropped_are_still_taken() -> None:
    topics().validate({"message.format.version": "2.8", "message.downconversion.enable": "false"})


def test_the_log_gets_typed_values() -> None:
    log = topics(log_segment_bytes="2097152").log_config(
        {"cleanup.policy": "compact", "retention.ms": "5", "message.timestamp.type": "LogAppendTime"}
    )
    assert log.segment_bytes == 2_097_152
    assert log.compacted
    assert log.retention_ms == 5
    assert log.log_append_time
    assert log.message_timestamp_after_max_ms == 3_600_000
    assert log.rules().max_message_bytes == 1_048_588


def test_the_dropped_timestamp_bound_stands_in_for_its_successors() -> None:
    log = topics().log_config(
        {"message.timestamp.difference.max.ms": "10", "message.timestamp.after.max.ms": "20"}
    )
    assert (log.message_timestamp_before_max_ms, log.message_timestamp_after_max_ms) == (10, 20)


def test_tiny_segments_have_an_internal_key() -> None:
    assert topics().log_config({"internal.segment.bytes": "1000"}).segment_bytes == 1000


def test_synonyms_name_the_broker_key() -> None:
    settings = topics(message_max_bytes="500")
    assert settings.synonyms({"max.message.bytes": " 9 "}, "max.message.bytes") == [
        Synonym("max.message.bytes", "9", ConfigSource.TOPIC_CONFIG),
        Synonym("message.max.bytes", "500", ConfigSource.STATIC_BROKER_CONFIG),
        Synonym("message.max.bytes", "1048588", ConfigSource.DEFAULT_CONFIG),
    ]
    assert settings.synonyms({}, "remote.storage.enable") == []


def test_sources_count_the_brokers_units() -> None:
    settings = topics(log_retention_hours="100")
    assert settings.source_of({}, "retention.ms") == ConfigSource.STATIC_BROKER_CONFIG
    assert settings.source_of({"retention.ms": "1"}, "retention.ms") == ConfigSource.TOPIC_CONFIG
    assert settings.source_of({}, "remote.storage.enable") == ConfigSource.DEFAULT_CONFIG


def test_shown_are_the_keys_of_4_4_and_what_is_set() -> None:
    shown = topics().shown_names({"message.format.version": "2.8"})
    assert len(shown) == 38
    assert "message.format.version" in shown
    assert "message.downconversion.enable" not in shown
    assert "internal.segment.bytes" not in shown
    assert len([key for key in TOPIC_KEYS.values() if key.era != "<4" and not key.internal]) == 37


def test_topics_with_the_same_overrides_share_the_settings_of_their_logs() -> None:
    settings = topics()
    one = settings.log_config({"segment.bytes": "1048576", "retention.ms": "5"})
    assert settings.log_config({"retention.ms": "5", "segment.bytes": "1048576"}) is one
    other = settings.log_config({"segment.bytes": "1048576"})
    assert (other.retention_ms, one.retention_ms) == (604_800_000, 5)


def test_a_dynamic_value_of_the_broker_reaches_settings_that_are_shared() -> None:
    broker = BrokerConfig({})
    settings = TopicConfigs(broker)
    before = settings.log_config({})
    broker.apply_dynamic({"log.retention.ms": "77"}, {})
    assert (settings.log_config({}).retention_ms, before.retention_ms) == (77, 604_800_000)


def test_very_many_different_settings_are_not_all_remembered() -> None:
    settings = topics()
    for number in range(1_100):
        assert settings.log_config({"retention.ms": str(number)}).retention_ms == number
    assert len(settings._log_configs) <= 1_000

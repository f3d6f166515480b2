"""Types and bounds: Kafka 4.4.0's texts for values that it refuses."""

from __future__ import annotations

import pytest

from broker.config.definitions import BROKER_KEYS, TOPIC_KEYS
from broker.config.values import ConfigError, check_value, format_value, parse_value

# Asked of LogConfig.validate of 4.4.0.
REFUSED = [
    ("retention.ms", "abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
    ("retention.ms", "-5", "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
    ("retention.ms", "1.5", "Invalid value 1.5 for configuration retention.ms: Not a number of type LONG"),
    ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
    (
        "retention.ms",
        "99999999999999999999",
        "Invalid value 99999999999999999999 for configuration retention.ms: Not a number of type LONG",
    ),
    (
        "segment.bytes",
        "3000000000",
        "Invalid value 3000000000 for configuration segment.bytes: Not a number of type INT",
    ),
    (
        "segment.bytes",
        "100",
        "Invalid value 100 for configuration segment.bytes: Value must be at least 1048576",
    ),
    ("segment.bytes", "0x10", "Invalid value 0x10 for configuration segment.bytes: Not a number of type INT"),
    ("flush.ms", "1_000", "Invalid value 1_000 for configuration flush.ms: Not a number of type LONG"),
    (
        "cleanup.policy",
        "delete,foo",
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    ("cleanup.policy", "delete,,compact", "Configuration 'cleanup.policy' values must not be empty."),
    (
        "compression.type",
        "GZIP",
        "Invalid value GZIP for configuration compression.type: String must be one of: "
        "uncompressed, zstd, lz4, snappy, gzip, producer",
    ),
    (
        "preallocate",
        "yes",
        "Invalid value yes for configuration preallocate: Expected value to be either true or false",
    ),
    (
        "min.cleanable.dirty.ratio",
        "2",
        "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
    ),
    (
        "min.cleanable.dirty.ratio",
        "-1",
        "Invalid value -1.0 for configuration min.cleanable.dirty.ratio: Value must be at least 0",
    ),
    (
        "min.cleanable.dirty.ratio",
        "x",
        "Invalid value x for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE",
    ),
    (
        "compression.gzip.level",
        "0",
        "Invalid value 0 for configuration compression.gzip.level: "
        "Value must be between 1 and 9 or equal to -1",
    ),
    (
        "compression.lz4.level",
        "18",
        "Invalid value 18 for configuration compression.lz4.level: Value must be no more than 17",
    ),
    (
        "leader.replication.throttled.replicas",
        "0:1,*",
        "Invalid value [0:1, *] for configuration leader.replication.throttled.replicas: "
        "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the "
        "following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
    ),
]

ACCEPTED = [
    ("retention.ms", " 1000 ", 1000),
    ("retention.ms", "-1", -1),
    ("segment.bytes", "+2000000", 2000000),
    ("cleanup.policy", "", ()),
    ("cleanup.policy", " delete , compact ", ("delete", "compact")),
    ("cleanup.policy", "delete,delete", ("delete",)),
    ("compression.type", " gzip ", "gzip"),
    ("compression.gzip.level", "-1", -1),
    ("preallocate", "TRUE", True),
    ("leader.replication.throttled.replicas", "*", ("*",)),
    ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
    ("message.format.version", "3.0-IV1", "3.0-IV1"),
]


@pytest.mark.parametrize(("name", "text", "message"), REFUSED)
def test_a_bad_value_is_refused_in_kafkas_words(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        TOPIC_KEYS[name].parse(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(("name", "text", "value"), ACCEPTED)
def test_a_good_value_is_typed(name: str, text: str, value: object) -> None:
    assert TOPIC_KEYS[name].parse(text) == value


def test_not_a_number_is_refused() -> None:
    with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
        TOPIC_KEYS["min.cleanable.dirty.ratio"].parse("NaN")


def test_choices_may_ignore_case() -> None:
    key = BROKER_KEYS["group.consumer.migration.policy"]
    assert key.parse("Upgrade") == "Upgrade"
    with pytest.raises(ConfigError, match=r"one of \(case insensitive\): DISABLED, "):
        key.parse("sideways")


def test_text_with_content_is_asked_for() -> None:
    with pytest.raises(ConfigError, match="String must be non-empty"):
        BROKER_KEYS["remote.log.metadata.manager.impl.prefix"].parse("")
    with pytest.raises(ConfigError, match="must not be empty"):
        check_value("some.list", "nonempty", ())
    with pytest.raises(ConfigError, match="not a Kafka release"):
        TOPIC_KEYS["message.format.version"].parse("latest")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (-1, "-1"),
        (("delete", "compact"), "delete,compact"),
        ((), ""),
        (0.5, "0.5"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e-7, "1.0E-7"),
        (float("inf"), "Infinity"),
        ("producer", "producer"),
    ],
)
def test_values_are_shown_as_java_shows_them(value: object, text: str | None) -> None:
    assert format_value(value) == text


def test_short_has_its_own_range() -> None:
    assert parse_value("k", "short", "32767") == 32767
    with pytest.raises(ConfigError, match="Not a number of type SHORT"):
        parse_value("k", "short", "32768")

"""Settings of single groups; texts and bounds are those of a running Kafka (tests/conformance)."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig, ConfigSource
from broker.config.definitions import GROUP_KEYS
from broker.config.group_configs import BOUNDS, GroupConfigs, validate
from broker.config.values import ConfigError, Value
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, ImageHolder

G = ConfigResource(ConfigType.GROUP, "g")
RESET_FORMS = "must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."


def configs(own: dict[str, str] | None = None, **static: str) -> GroupConfigs:
    broker = BrokerConfig({"node.id": "1", **{k.replace("_", "."): v for k, v in static.items()}})
    image = ClusterImage(configs={G: own} if own is not None else {})
    return GroupConfigs(broker, ImageHolder(image))


def refusal(values: dict[str, str], **static: str) -> str:
    broker = BrokerConfig({"node.id": "1", **{k.replace("_", "."): v for k, v in static.items()}})
    with pytest.raises(ConfigError) as caught:
        validate(broker, values)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("consumer.session.timeout.ms", 45_000),
        ("consumer.heartbeat.interval.ms", 5_000),
        ("consumer.assignment.interval.ms", 1_000),
        ("share.record.lock.duration.ms", 30_000),
        ("share.delivery.count.limit", 5),
        ("share.partition.max.record.locks", 2_000),
        ("share.auto.offset.reset", "latest"),
        ("share.isolation.level", "read_uncommitted"),
        ("share.renew.acknowledge.enable", True),
        ("streams.assignor.name", "sticky"),
        ("streams.rack.aware.assignment.tags", ()),
        ("errors.deadletterqueue.topic.name", ""),
    ],
)
def test_defaults(name: str, default: Value) -> None:
    found = configs()
    assert found.get("g", name) == default
    assert found.own("g", name) is None
    assert found.own_text("g", name) is None


def test_the_groups_own_value_then_the_brokers_then_the_default() -> None:
    name = "consumer.heartbeat.interval.ms"
    assert configs().integer("g", name) == 5_000
    assert configs(group_consumer_heartbeat_interval_ms="6000").integer("g", name) == 6_000
    found = configs({name: " 7000 "}, group_consumer_heartbeat_interval_ms="6000")
    assert found.integer("g", name) == 7_000
    assert found.own_text("g", name) == "7000"
    assert found.integer("other", name) == 6_000


def test_a_change_is_in_force_at_once() -> None:
    holder = ImageHolder()
    found = GroupConfigs(BrokerConfig({"node.id": "1"}), holder)
    assert found.get("g", "share.auto.offset.reset") == "latest"
    holder.publish(ClusterImage(configs={G: {"share.auto.offset.reset": "earliest"}}))
    assert found.get("g", "share.auto.offset.reset") == "earliest"


def test_a_value_out_of_bounds_that_were_moved_is_shown_but_the_bound_is_in_force() -> None:
    own = {"consumer.session.timeout.ms": "60000", "share.delivery.count.limit": "2"}
    found = configs(
        own, group_consumer_max_session_timeout_ms="50000", group_share_min_delivery_count_limit="4"
    )
    assert found.integer("g", "consumer.session.timeout.ms") == 50_000
    assert found.integer("g", "share.delivery.count.limit") == 4
    shown = {key.name: value for key, value, _ in found.shown("g")}
    assert (shown["consumer.session.timeout.ms"], shown["share.delivery.count.limit"]) == ("60000", "2")


def test_a_stored_value_that_cannot_be_read_does_not_count() -> None:
    found = configs({"share.delivery.count.limit": "many"})
    assert found.integer("g", "share.delivery.count.limit") == 5
    assert {key.name: value for key, value, _ in found.shown("g")}["share.delivery.count.limit"] == "many"


def test_synonyms_lead_from_the_group_to_the_default() -> None:
    name = "share.session.timeout.ms"
    found = configs({name: "+50000"}, group_share_session_timeout_ms="46000")
    [(value, synonyms)] = [(v, s) for key, v, s in found.shown("g") if key.name == name]
    assert value == "50000"
    assert [(s.name, s.value, s.source) for s in synonyms] == [
        (name, "50000", ConfigSource.GROUP_CONFIG),
        (f"group.{name}", "46000", ConfigSource.STATIC_BROKER_CONFIG),
        (f"group.{name}", "45000", ConfigSource.DEFAULT_CONFIG),
    ]
    [synonyms] = [s for key, _, s in found.shown("g") if key.name == "share.isolation.level"]
    assert [(s.name, s.value, s.source) for s in synonyms] == [
        ("share.isolation.level", "read_uncommitted", ConfigSource.DEFAULT_CONFIG)
    ]


def test_internal_keys_are_shown_where_they_are_set() -> None:
    assert [key.name for key, _, _ in configs().shown("g") if key.internal] == []
    found = configs({"streams.acceptable.recovery.lag": "+7"})
    assert [(key.name, value) for key, value, _ in found.shown("g") if key.internal] == [
        ("streams.acceptable.recovery.lag", "+7")
    ]


def test_every_bound_holds_at_its_edges() -> None:
    broker = BrokerConfig({"node.id": "1"})
    for name, (low, high) in BOUNDS.items():
        for bound, step in ((low, -1), (high, 1)):
            if bound is None:
                continue
            edge = broker.integer(bound)
            validate(broker, {name: str(edge)})
            if step > 0 or edge > int(GROUP_KEYS[name].valid.removesuffix("..")):
                with pytest.raises(ConfigError, match="must be"):
                    validate(broker, {name: str(edge + step)})


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"no.such": "1"}, "Unknown group config name: no.such"),
        (
            {"consumer.session.timeout.ms": "44999"},
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (
            {"consumer.session.timeout.ms": "0"},
            "Invalid value 0 for configuration consumer.session.timeout.ms: Value must be at least 1",
        ),
        (
            {"consumer.session.timeout.ms": " x"},
            "Invalid value  x for configuration consumer.session.timeout.ms: Not a number of type INT",
        ),
        (
            {"share.delivery.count.limit": "11"},
            "share.delivery.count.limit must be in the range 2 to 10 inclusive.",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to 2",
        ),
        (
            {"streams.task.offset.interval.ms": "1"},
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        (
            {"streams.assignor.name": "x"},
            "streams.assignor.name 'x' is not a registered task assignor. "
            "Registered assignors are: [sticky].",
        ),
        (
            {"streams.rack.aware.assignment.tags": "a, a"},
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            {"streams.rack.aware.assignment.tags": "a,,b"},
            "Configuration 'streams.rack.aware.assignment.tags' values must not be empty.",
        ),
        (
            {"errors.deadletterqueue.topic.name": " __x"},
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        ),
        (
            {"share.isolation.level": "READ_COMMITTED"},
            "Invalid value READ_COMMITTED for configuration share.isolation.level: "
            "String must be one of: read_committed, read_uncommitted",
        ),
        (
            {"share.renew.acknowledge.enable": "1"},
            "Invalid value 1 for configuration share.renew.acknowledge.enable: "
            "Expected value to be either true or false",
        ),
        # the first fault in Kafka's order counts
        (
            {"consumer.session.timeout.ms": "1", "consumer.heartbeat.interval.ms": "1"},
            "consumer.heartbeat.interval.ms must be in the range 5000 to 15000 inclusive.",
        ),
    ],
)
def test_what_is_refused(values: dict[str, str], text: str) -> None:
    assert refusal(values) == text


@pytest.mark.parametrize(
    "text", ["LATEST", "by_duration", "by_duration:", "by_duration:-PT1H", "x", "none", ""]
)
def test_where_a_share_group_cannot_start(text: str) -> None:
    assert refusal({"share.auto.offset.reset": text}) == (
        f"Invalid value {text} for configuration share.auto.offset.reset: Invalid value `{text}` for "
        f"configuration share.auto.offset.reset. The value {RESET_FORMS}"
    )


@pytest.mark.parametrize("text", ["earliest", " latest ", "by_duration:P1D", "by_duration:PT0S"])
def test_where_a_share_group_may_start(text: str) -> None:
    validate(BrokerConfig({"node.id": "1"}), {"share.auto.offset.reset": text})


def test_a_session_is_longer_than_a_heartbeat_whoever_says_so() -> None:
    loose = {
        "group_share_min_session_timeout_ms": "1000",
        "group_share_min_heartbeat_interval_ms": "1000",
    }
    text = "share.session.timeout.ms must be greater than share.heartbeat.interval.ms"
    assert refusal({"share.session.timeout.ms": "5000"}, **loose) == text
    equal = {"share.session.timeout.ms": "7000", "share.heartbeat.interval.ms": "7000"}
    assert refusal(equal, **loose) == text
    broker = BrokerConfig({"node.id": "1", **{k.replace("_", "."): v for k, v in loose.items()}})
    validate(broker, equal | {"share.heartbeat.interval.ms": "6999"})
    validate(broker, {"share.isolation.level": "read_committed"})

"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources (protocol.md 4.5 and 7)."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SOURCE_TOPIC, SOURCE_DYNAMIC_BROKER, SOURCE_DYNAMIC_DEFAULT, SOURCE_STATIC, SOURCE_DEFAULT = 1, 2, 3, 4, 5
SET, DELETE, APPEND, SUBTRACT = range(4)

Describe = m.DescribeConfigsRequest
Alter = m.AlterConfigsRequest
Change = m.IncrementalAlterConfigsRequest


def describe(wire: WireClient, kind: int, name: str, *keys: str, version: int = 4, **fields: Any) -> Any:
    resource = Describe.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    (result,) = wire.send(Describe(resources=[resource], **fields), version).results
    return result


def entries(wire: WireClient, kind: int, name: str, *keys: str, **fields: Any) -> dict[str, Any]:
    result = describe(wire, kind, name, *keys, **fields)
    assert result.error_code == 0, result
    return {entry.name: entry for entry in result.configs}


def change(wire: WireClient, kind: int, name: str, *ops: tuple[str, int, str | None], **fields: Any) -> int:
    configs = [Change.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in ops]
    resource = Change.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return int(wire.send(Change(resources=[resource], **fields), 1).responses[0].error_code)


def replace(wire: WireClient, kind: int, name: str, configs: dict[str, str | None], **fields: Any) -> int:
    given = [Alter.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = Alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=given)
    return int(wire.send(Alter(resources=[resource], **fields), 2).responses[0].error_code)


def node(wire: WireClient) -> str:
    return str(wire.metadata().brokers[0].node_id)


def topic_value(wire: WireClient, topic: str, key: str) -> tuple[str | None, int]:
    entry = entries(wire, TOPIC, topic, key)[key]
    return entry.value, entry.config_source


def await_value(wire: WireClient, topic: str, key: str, value: str, source: int) -> None:
    """Values come into force at Apache Kafka a moment after they are acknowledged."""
    wait_until(lambda: topic_value(wire, topic, key) == (value, source), f"{key}={value} of {topic}")


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topics_configs_at_every_version(wire: WireClient, name: str, version: int) -> None:
    wire.create_topic(name, retention_ms="1234")
    found = entries(wire, TOPIC, name, version=version)
    assert (found["retention.ms"].value, found["retention.ms"].config_source) == ("1234", SOURCE_TOPIC)
    assert (found["max.message.bytes"].value, found["max.message.bytes"].config_source) == (
        "1048588",
        SOURCE_DEFAULT,
    )
    assert {entry.read_only for entry in found.values()} == {False}
    assert {entry.is_sensitive for entry in found.values()} == {False}


def test_every_topic_key_of_kafka_4_4_is_there(wire: WireClient, topic: str) -> None:
    assert set(entries(wire, TOPIC, topic)) == {
        "cleanup.policy", "compression.gzip.level", "compression.lz4.level", "compression.type",
        "compression.zstd.level", "delete.retention.ms", "errors.deadletterqueue.group.enable",
        "file.delete.delay.ms", "flush.messages", "flush.ms", "follower.replication.throttled.replicas",
        "index.interval.bytes", "leader.replication.throttled.replicas", "local.retention.bytes",
        "local.retention.ms", "max.compaction.lag.ms", "max.decompressed.message.bytes", "max.message.bytes",
        "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "message.timestamp.type",
        "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas", "preallocate",
        "remote.copy.lag.bytes", "remote.copy.lag.ms", "remote.log.copy.disable",
        "remote.log.delete.on.disable", "remote.storage.enable", "retention.bytes", "retention.ms",
        "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
        "unclean.leader.election.enable",
    }  # fmt: skip


@pytest.mark.parametrize("key", ["retention.ms", "cleanup.policy", "segment.bytes", "preallocate"])
def test_types_and_synonyms_of_topic_keys(wire: WireClient, topic: str, key: str) -> None:
    entry = entries(wire, TOPIC, topic, key, include_synonyms=True)[key]
    types = {"retention.ms": 5, "cleanup.policy": 7, "segment.bytes": 3, "preallocate": 1}
    assert entry.config_type == types[key]
    names = {
        "retention.ms": [],  # log.retention.ms has no default
        "cleanup.policy": ["log.cleanup.policy"],
        "segment.bytes": ["log.segment.bytes"],
        "preallocate": ["log.preallocate"],
    }[key]
    assert [(s.name, s.source) for s in entry.synonyms] == [(name, SOURCE_DEFAULT) for name in names]


def test_documentation_comes_when_asked_for(wire: WireClient, topic: str) -> None:
    assert not entries(wire, TOPIC, topic, "retention.ms")["retention.ms"].documentation
    asked = entries(wire, TOPIC, topic, "retention.ms", include_documentation=True)
    assert len(asked["retention.ms"].documentation) > 20


def test_an_override_comes_first_among_its_synonyms(wire: WireClient, topic: str) -> None:
    assert change(wire, TOPIC, topic, ("segment.bytes", SET, "2000000")) == 0
    await_value(wire, topic, "segment.bytes", "2000000", SOURCE_TOPIC)
    synonyms = entries(wire, TOPIC, topic, "segment.bytes", include_synonyms=True)["segment.bytes"].synonyms
    assert [(s.name, s.value, s.source) for s in synonyms] == [
        ("segment.bytes", "2000000", SOURCE_TOPIC),
        ("log.segment.bytes", "1073741824", SOURCE_DEFAULT),
    ]


def test_a_broker_describes_itself(wire: WireClient) -> None:
    found = entries(wire, BROKER, node(wire))
    assert found["log.dirs"].config_source == SOURCE_STATIC
    assert found["log.dirs"].read_only
    assert found["num.io.threads"].value == "8"
    assert not found["num.io.threads"].read_only
    assert found["ssl.keystore.password"].is_sensitive
    assert found["ssl.keystore.password"].value is None
    assert found["num.partitions"].value
    assert len(found) > 200


def test_who_cannot_be_described(wire: WireClient, name: str) -> None:
    assert describe(wire, TOPIC, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(wire, TOPIC, "bad name").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert describe(wire, BROKER, "77").error_code == ErrorCode.INVALID_REQUEST
    assert describe(wire, BROKER, "x").error_code == ErrorCode.INVALID_REQUEST
    assert describe(wire, 3, "x").error_code == ErrorCode.INVALID_REQUEST
    assert describe(wire, BROKER, "").error_code == 0


def test_messages_of_success_and_failure(wire: WireClient, topic: str) -> None:
    assert describe(wire, TOPIC, topic).error_message == ""
    resource = Change.AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=[])
    assert wire.send(Change(resources=[resource]), 1).responses[0].error_message is None


def test_set_delete_append_subtract(wire: WireClient, topic: str) -> None:
    assert change(wire, TOPIC, topic, ("retention.ms", SET, "5000")) == 0
    await_value(wire, topic, "retention.ms", "5000", SOURCE_TOPIC)
    assert change(wire, TOPIC, topic, ("retention.ms", DELETE, None)) == 0
    await_value(wire, topic, "retention.ms", "604800000", SOURCE_DEFAULT)
    assert change(wire, TOPIC, topic, ("cleanup.policy", APPEND, "compact")) == 0
    await_value(wire, topic, "cleanup.policy", "delete,compact", SOURCE_TOPIC)
    assert change(wire, TOPIC, topic, ("cleanup.policy", APPEND, "compact")) == 0
    await_value(wire, topic, "cleanup.policy", "delete,compact", SOURCE_TOPIC)
    assert change(wire, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")) == 0
    await_value(wire, topic, "cleanup.policy", "compact", SOURCE_TOPIC)


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (("retention.ms", APPEND, "5"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SUBTRACT, "5"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("cleanup.policy", APPEND, None), ErrorCode.INVALID_REQUEST),
        (("retention.ms", SET, "abc"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, "-2"), ErrorCode.INVALID_CONFIG),
        (("no.such.key", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("no.such.key", DELETE, None), ErrorCode.NONE),
        (("retention.ms", 9, "1"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (("retention.ms", SET, " 1000 "), ErrorCode.NONE),
        (("cleanup.policy", SET, "compact, delete"), ErrorCode.NONE),
        (("retention.ms", DELETE, None), ErrorCode.NONE),
    ],
)
def test_what_an_operation_may_be(
    wire: WireClient, topic: str, op: tuple[str, int, str | None], error: int
) -> None:
    assert change(wire, TOPIC, topic, op) == error


def test_a_key_twice_is_42(wire: WireClient, topic: str) -> None:
    twice = [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]
    assert change(wire, TOPIC, topic, *twice) == ErrorCode.INVALID_REQUEST


def test_a_resource_is_atomic_and_validate_only_changes_nothing(wire: WireClient, topic: str) -> None:
    mixed = [("retention.ms", SET, "1"), ("segment.ms", SET, "x")]
    assert change(wire, TOPIC, topic, *mixed) == ErrorCode.INVALID_CONFIG
    assert change(wire, TOPIC, topic, ("retention.ms", SET, "1"), validate_only=True) == 0
    await_value(wire, topic, "retention.ms", "604800000", SOURCE_DEFAULT)


def test_the_old_alter_replaces_everything(wire: WireClient, topic: str) -> None:
    assert change(wire, TOPIC, topic, ("retention.ms", SET, "5000")) == 0
    assert replace(wire, TOPIC, topic, {"segment.ms": "7000"}) == 0
    await_value(wire, topic, "retention.ms", "604800000", SOURCE_DEFAULT)
    await_value(wire, topic, "segment.ms", "7000", SOURCE_TOPIC)
    assert replace(wire, TOPIC, topic, {"segment.ms": "x"}) == ErrorCode.INVALID_CONFIG
    assert replace(wire, TOPIC, topic, {"segment.ms": None}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, TOPIC, f"{topic}-x", {"segment.ms": "1"}) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert replace(wire, TOPIC, "bad name", {"segment.ms": "1"}) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_changed_limit_counts_for_the_next_produce(
    either_broker: OttlaProcess | KafkaProcess, wire: WireClient, topic: str
) -> None:
    """With Apache Kafka for one of the next."""
    big = build_batch([Record(0, 1_700_000_000_000, None, b"x" * 500, ())])
    assert wire.produce(topic, big).error_code == 0
    assert change(wire, TOPIC, topic, ("max.message.bytes", SET, "100")) == 0

    def is_refused() -> bool:
        return bool(wire.produce(topic, big).error_code == ErrorCode.MESSAGE_TOO_LARGE)

    if isinstance(either_broker, OttlaProcess):
        assert is_refused()
    else:
        wait_until(is_refused, "the limit to count")


def test_a_dynamic_broker_value_is_every_topics_default(wire: WireClient, topic: str) -> None:
    own = node(wire)
    try:
        assert change(wire, BROKER, own, ("log.retention.ms", SET, "777000")) == 0
        await_value(wire, topic, "retention.ms", "777000", SOURCE_DYNAMIC_BROKER)
        assert entries(wire, BROKER, own, "log.retention.ms")["log.retention.ms"].value == "777000"
    finally:
        assert change(wire, BROKER, own, ("log.retention.ms", DELETE, None)) == 0
    await_value(wire, topic, "retention.ms", "604800000", SOURCE_DEFAULT)


def test_a_cluster_default_yields_to_the_brokers_own(wire: WireClient, topic: str) -> None:
    own = node(wire)
    try:
        assert change(wire, BROKER, "", ("log.retention.ms", SET, "111000")) == 0
        await_value(wire, topic, "retention.ms", "111000", SOURCE_DYNAMIC_DEFAULT)
        wait_until(lambda: "log.retention.ms" in entries(wire, BROKER, ""), "the default of all brokers")
        assert change(wire, BROKER, own, ("log.retention.ms", SET, "222000")) == 0
        await_value(wire, topic, "retention.ms", "222000", SOURCE_DYNAMIC_BROKER)
    finally:
        change(wire, BROKER, own, ("log.retention.ms", DELETE, None))
        change(wire, BROKER, "", ("log.retention.ms", DELETE, None))


@pytest.mark.parametrize("key", ["log.dirs", "broker.id", "num.partitions", "no.such.key"])
def test_broker_keys_that_do_not_change_are_42(wire: WireClient, key: str) -> None:
    error = change(wire, BROKER, node(wire), (key, SET, "1"))
    # An unknown key is kept by Kafka for a plugin that may know it.
    assert error == (0 if key == "no.such.key" else ErrorCode.INVALID_REQUEST)
    change(wire, BROKER, node(wire), (key, DELETE, None))


def test_the_old_alter_refuses_what_the_new_one_refuses(wire: WireClient, topic: str) -> None:
    twice = Alter.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=topic,
        configs=[Alter.AlterableConfig(name="retention.ms", value=value) for value in ("1", "2")],
    )
    (answer,) = wire.send(Alter(resources=[twice]), 2).responses
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert replace(wire, BROKER, node(wire), {"log.dirs": "/x"}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, BROKER, node(wire), {"log.retention.ms": "x"}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, BROKER, "", {"cordoned.log.dirs": ""}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, BROKER, "99", {"log.retention.ms": "5"}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, TOPIC, "", {"retention.ms": "5"}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, LOGGER, node(wire), {"root": "INFO"}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, TOPIC, topic, {"retention.ms": "5"}, validate_only=True) == 0
    await_value(wire, topic, "retention.ms", "604800000", SOURCE_DEFAULT)


def test_per_broker_keys_have_no_default_for_all(wire: WireClient) -> None:
    assert change(wire, BROKER, "", ("cordoned.log.dirs", SET, "")) == ErrorCode.INVALID_REQUEST


def test_resources_are_independent(wire: WireClient, topic: str) -> None:
    def resource(kind: int, name: str, *values: str) -> m.IncrementalAlterConfigsRequest.AlterConfigsResource:
        configs = [Change.AlterableConfig(name="retention.ms", config_operation=SET, value=v) for v in values]
        return Change.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)

    wrong, missing = resource(TOPIC, topic, "x"), resource(TOPIC, f"{topic}-x", "1")
    answer = wire.send(Change(resources=[wrong, missing, resource(BROKER, node(wire))]), 1)
    assert [each.error_code for each in answer.responses] == [40, 3, 0]
    twice = wire.send(Change(resources=[resource(TOPIC, topic, "5")] * 2), 1)
    assert [each.error_code for each in twice.responses] == [ErrorCode.INVALID_REQUEST] * 2


def test_levels_of_loggers(wire: WireClient) -> None:
    own = node(wire)
    found = describe(wire, LOGGER, own)
    kinds = {(e.config_source, e.read_only, e.is_sensitive, e.config_type) for e in found.configs}
    assert (found.error_code, kinds) == (0, {(6, False, False, 0)})
    before = {entry.name: entry.value for entry in found.configs}["root"]
    assert change(wire, LOGGER, own, ("root", SET, "ERROR"), validate_only=True) == 0
    assert entries(wire, LOGGER, own, "root")["root"].value == before
    assert change(wire, LOGGER, own, ("root", SET, before)) == 0
    for operation, value in ((DELETE, None), (APPEND, "INFO"), (SET, None)):
        assert change(wire, LOGGER, own, ("root", operation, value)) == ErrorCode.INVALID_REQUEST
    assert change(wire, LOGGER, own, ("no.such.logger", SET, "INFO")) == ErrorCode.INVALID_CONFIG
    assert change(wire, LOGGER, own, ("root", SET, "info")) == ErrorCode.INVALID_CONFIG


def test_loggers(wire: WireClient) -> None:
    own = node(wire)
    assert change(wire, LOGGER, own, ("kafka.server.KafkaApis", SET, "NOISY")) == ErrorCode.INVALID_CONFIG
    assert change(wire, LOGGER, "99", ("root", SET, "INFO")) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 1])
def test_list_config_resources(wire: WireClient, topic: str, version: int) -> None:
    answer = wire.send(m.ListConfigResourcesRequest(), version)
    assert answer.error_code == 0
    listed = {(r.resource_type, r.resource_name) for r in answer.config_resources}
    assert ((TOPIC, topic) in listed) == (version == 1)
    if version == 1:
        assert (BROKER, node(wire)) in listed

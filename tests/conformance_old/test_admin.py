"""Old Metadata, CreateTopics, DeleteTopics, DescribeConfigs and DescribeLogDirs (protocol.md 4.3 to 4.6)."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.wire_client import WireClient

TOPIC, BROKER = 2, 4
Create = m.CreateTopicsRequest


@pytest.mark.parametrize("version", range(4))
def test_metadata_of_a_topic(wire: WireClient, name: str, version: int) -> None:
    wire.create_topic(name, partitions=2)
    answer = wire.metadata(name, version=version)
    (broker,) = answer.brokers
    assert (broker.host, broker.port) == wire.socket.getpeername()[:2]
    assert answer.controller_id == (broker.node_id if version >= 1 else -1)
    assert (answer.cluster_id is not None) == (version >= 2)
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, name, False)
    found = {
        p.partition_index: (p.error_code, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions
    }
    one = [broker.node_id]
    assert found == dict.fromkeys(range(2), (0, broker.node_id, one, one))


@pytest.mark.parametrize("version", range(4))
def test_metadata_of_all_topics_and_of_none(wire: WireClient, topic: str, version: int) -> None:
    everything = m.MetadataRequest(topics=None if version else [])
    assert topic in [each.name for each in wire.send(everything, version).topics]
    if version:
        assert wire.send(m.MetadataRequest(topics=[]), version).topics == []


@pytest.mark.parametrize("version", range(4))
def test_metadata_creates_what_may_exist(wire: WireClient, name: str, version: int) -> None:
    (bad,) = wire.metadata("bad name", version=version).topics
    assert (bad.error_code, bad.partitions) == (ErrorCode.INVALID_TOPIC_EXCEPTION, [])
    while error := wire.metadata(name, version=version).topics[0].error_code:
        assert error in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


@pytest.mark.parametrize("version", range(4))
def test_metadata_tells_a_topic_once(wire: WireClient, topic: str, version: int) -> None:
    assert [each.name for each in wire.metadata(topic, topic, version=version).topics] == [topic]


def create(
    wire: WireClient, version: int, *topics: m.CreateTopicsRequest.CreatableTopic, **fields: Any
) -> Any:
    return wire.send(Create(topics=list(topics), **{"timeout_ms": 30_000, **fields}), version).topics


def topic_of(
    name: str, partitions: int = 1, factor: int = 1, **fields: Any
) -> m.CreateTopicsRequest.CreatableTopic:
    return Create.CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **fields)


@pytest.mark.parametrize("version", range(3))
def test_topics_are_created(wire: WireClient, name: str, version: int) -> None:
    (made,) = create(wire, version, topic_of(name, 3))
    assert (made.name, made.error_code) == (name, 0)
    (again,) = create(wire, version, topic_of(name, 3))
    assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    if version >= 1:
        assert again.error_message == f"Topic '{name}' already exists."


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    ("partitions", "factor", "error"),
    [(0, 1, 37), (-2, 1, 37), (1, 0, 38), (1, 5, 38), (-1, 1, 0), (1, -1, 0), (-1, -1, 0)],
)
def test_counts_and_defaults_at_every_version(
    wire: WireClient, name: str, version: int, partitions: int, factor: int, error: int
) -> None:
    assert create(wire, version, topic_of(name, partitions, factor))[0].error_code == error


@pytest.mark.parametrize("version", range(3))
def test_what_is_not_created(wire: WireClient, name: str, version: int) -> None:
    Config = Create.CreatableTopicConfig
    assert create(wire, version, topic_of("bad name"))[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    for config in (Config(name="no.such.key", value="1"), Config(name="retention.ms", value=None)):
        assert (
            create(wire, version, topic_of(name, configs=[config]))[0].error_code == ErrorCode.INVALID_CONFIG
        )
    assert [each.error_code for each in create(wire, version, topic_of(name), topic_of(name))] == [42]
    assert create(wire, version) == []


def test_validate_only_begins_with_version_1(wire: WireClient, name: str) -> None:
    assert create(wire, 1, topic_of(name), validate_only=True)[0].error_code == 0
    assert create(wire, 1, topic_of(name))[0].error_code == 0


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_does_not_wait_is_told_7(wire: WireClient, name: str, version: int, timeout_ms: int) -> None:
    (made,) = create(wire, version, topic_of(name), timeout_ms=timeout_ms)
    assert made.error_code == ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("version", range(2))
def test_topics_are_deleted(wire: WireClient, topic: str, version: int) -> None:
    def delete(*names: str, timeout_ms: int = 10_000) -> list[tuple[str, int]]:
        request = m.DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
        return [(each.name, each.error_code) for each in wire.send(request, version).responses]

    assert delete(topic) == [(topic, 0)]
    assert delete(topic) == [(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert delete("bad name") == [("bad name", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert delete() == []
    wire.create_topic(f"{topic}-b")
    assert delete(f"{topic}-b", f"{topic}-b") == [(f"{topic}-b", ErrorCode.INVALID_REQUEST)]
    assert delete(f"{topic}-b", timeout_ms=0) == [(f"{topic}-b", ErrorCode.REQUEST_TIMED_OUT)]


def configs(wire: WireClient, kind: int, name: str, *keys: str) -> tuple[int, dict[str, Any]]:
    Ask = m.DescribeConfigsRequest
    resource = Ask.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    (result,) = wire.send(Ask(resources=[resource]), 0).results
    return result.error_code, {entry.name: entry for entry in result.configs}


def test_configs_of_a_topic(wire: WireClient, name: str) -> None:
    wire.create_topic(name, retention_ms="77")
    error, found = configs(wire, TOPIC, name, "retention.ms", "segment.bytes")
    assert (error, set(found)) == (0, {"retention.ms", "segment.bytes"})
    values = {key: (e.value, e.is_default, e.read_only, e.is_sensitive) for key, e in found.items()}
    assert values["retention.ms"] == ("77", False, False, False)
    assert values["segment.bytes"][0::2] == ("1073741824", False)
    assert len(configs(wire, TOPIC, name)[1]) >= 30


def test_configs_of_a_broker_and_of_who_is_not_there(wire: WireClient, name: str) -> None:
    node = str(wire.metadata().brokers[0].node_id)
    error, found = configs(wire, BROKER, node, "log.dirs", "num.io.threads", "ssl.keystore.password")
    assert error == 0
    assert found["log.dirs"].read_only
    assert (found["num.io.threads"].value, found["num.io.threads"].read_only) == ("8", False)
    assert (found["ssl.keystore.password"].value, found["ssl.keystore.password"].is_sensitive) == (None, True)
    assert configs(wire, BROKER, "99")[0] == ErrorCode.INVALID_REQUEST
    assert configs(wire, 3, "x")[0] == ErrorCode.INVALID_REQUEST
    assert configs(wire, TOPIC, name)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert configs(wire, TOPIC, "bad name")[0] == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_log_directories(wire: WireClient, name: str) -> None:
    wire.create_topic(name, partitions=2)
    wire.produce_values(name, b"a" * 100)
    Ask = m.DescribeLogDirsRequest
    topics = [Ask.DescribableLogDirTopic(topic=name, partitions=[0, 1, 7])]
    (directory,) = wire.send(Ask(topics=topics), 0).results
    assert (directory.error_code, directory.log_dir[:1]) == (0, "/")
    stored = sum(map(len, wire.stored_batches(name)))
    assert {
        p.partition_index: (p.partition_size, p.offset_lag, p.is_future_key)
        for topic in directory.topics
        for p in topic.partitions
    } == {0: (stored, 0, False), 1: (0, 0, False)}
    (everything,) = wire.send(Ask(topics=None), 0).results
    assert name in [topic.name for topic in everything.topics]
    (nothing,) = wire.send(Ask(topics=[]), 0).results
    assert nothing.topics == []

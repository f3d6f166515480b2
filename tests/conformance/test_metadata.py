"""Metadata, DescribeCluster, DescribeTopicPartitions (protocol.md 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.wire_client import WireClient

Topic = m.MetadataRequest.MetadataRequestTopic
NO_OPERATIONS = -(2**31)


def described(wire: WireClient, *names: str, **fields: Any) -> Any:
    """One topic's metadata without auto-creation."""
    (topic,) = wire.metadata(*names, allow_auto_topic_creation=False, **fields).topics
    return topic


@pytest.mark.parametrize("version", range(14))
def test_every_version_names_broker_topic_and_partitions(wire: WireClient, name: str, version: int) -> None:
    topic_id = wire.create_topic(name, partitions=3)
    answer = wire.metadata(name, version=version)
    (broker,) = answer.brokers
    (topic,) = answer.topics
    assert (broker.host, broker.port) == wire.socket.getpeername()[:2]
    assert (topic.error_code, topic.name, topic.is_internal) == (0, name, False)
    assert sorted(p.partition_index for p in topic.partitions) == [0, 1, 2]
    for p in topic.partitions:
        assert (p.error_code, p.leader_id, p.replica_nodes, p.isr_nodes) == (
            0,
            broker.node_id,
            [broker.node_id],
            [broker.node_id],
        )
        assert p.leader_epoch == (0 if version >= 7 else -1)
    if version >= 1:
        assert answer.controller_id == broker.node_id
    if version >= 2:
        assert len(answer.cluster_id) == 22
    if version >= 8:
        assert topic.topic_authorized_operations == NO_OPERATIONS
    if version >= 10:
        assert topic.topic_id == topic_id


def test_all_topics_and_none(wire: WireClient, topic: str) -> None:
    def names(**fields: Any) -> list[str]:
        version = fields.pop("version")
        return [t.name for t in wire.send(m.MetadataRequest(**fields), version).topics]

    assert topic in names(topics=[], version=0)
    assert topic in names(topics=None, version=1)
    assert topic in names(topics=None, version=12)
    assert names(topics=[], version=1) == []
    assert names(topics=[], version=12) == []


def test_a_missing_topic_is_made_when_that_is_allowed(wire: WireClient, name: str) -> None:
    assert described(wire, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert described(wire, name).partitions == []
    while (made := wire.metadata(name).topics[0]).error_code:
        assert made.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
    assert len(made.partitions) >= 1


def test_versions_below_4_always_allow_creation(wire: WireClient, name: str) -> None:
    while wire.metadata(name, version=3).topics[0].error_code:
        pass
    assert described(wire, name).error_code == 0


@pytest.mark.parametrize("bad", ["", ".", "..", " a", "a b", "a/b", "a" * 250, "ä", "a\0b", "a:b"])
def test_a_bad_name_is_17_and_never_made(wire: WireClient, bad: str) -> None:
    (topic,) = wire.metadata(bad).topics
    assert topic.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert bad not in [t.name for t in wire.send(m.MetadataRequest(topics=None), 12).topics]


def test_topics_by_id(wire: WireClient, name: str) -> None:
    topic_id = wire.create_topic(name)
    answer = wire.send(m.MetadataRequest(topics=[Topic(topic_id=topic_id, name=None)]), 12)
    assert [(t.name, t.error_code) for t in answer.topics] == [(name, 0)]
    answer = wire.send(m.MetadataRequest(topics=[Topic(topic_id=b"\x05" * 16, name=None)]), 12)
    assert [t.error_code for t in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_authorized_operations_on_request(wire: WireClient, topic: str) -> None:
    found = described(wire, topic, include_topic_authorized_operations=True)
    # read, write, create, delete, alter, describe, describe configs, alter configs
    assert found.topic_authorized_operations == sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_cluster(wire: WireClient, version: int) -> None:
    answer = wire.send(m.DescribeClusterRequest(), version)
    assert (answer.error_code, answer.cluster_id) == (0, wire.metadata().cluster_id)
    (broker,) = answer.brokers
    assert (broker.host, broker.port) == wire.socket.getpeername()[:2]
    assert answer.controller_id == broker.broker_id
    assert answer.cluster_authorized_operations == NO_OPERATIONS


@pytest.mark.parametrize(
    ("endpoint", "error"), [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)]
)
def test_describe_cluster_of_other_endpoints(wire: WireClient, endpoint: int, error: int) -> None:
    assert wire.send(m.DescribeClusterRequest(endpoint_type=endpoint), 1).error_code == error


def partitions_of(wire: WireClient, *names: str, limit: int = 2000, cursor: Any = None) -> Any:
    Ask = m.DescribeTopicPartitionsRequest
    topics = [Ask.TopicRequest(name=name) for name in names]
    return wire.send(Ask(topics=topics, response_partition_limit=limit, cursor=cursor), 0)


def test_topic_partitions_are_sorted_and_paged(wire: WireClient, name: str) -> None:
    wire.create_topic(f"{name}-b", partitions=3)
    wire.create_topic(f"{name}-a", partitions=2)
    answer = partitions_of(wire, f"{name}-b", f"{name}-a")
    assert [(t.name, len(t.partitions)) for t in answer.topics] == [(f"{name}-a", 2), (f"{name}-b", 3)]
    assert answer.next_cursor is None
    first = partitions_of(wire, f"{name}-b", f"{name}-a", limit=3)
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in first.topics] == [
        (f"{name}-a", [0, 1]),
        (f"{name}-b", [0]),
    ]
    assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == (f"{name}-b", 1)
    Cursor = m.DescribeTopicPartitionsRequest.Cursor
    cursor = Cursor(topic_name=f"{name}-b", partition_index=1)
    rest = partitions_of(wire, f"{name}-b", f"{name}-a", cursor=cursor)
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in rest.topics] == [
        (f"{name}-b", [1, 2])
    ]


def test_topic_partitions_of_a_missing_topic(wire: WireClient, name: str) -> None:
    answer = partitions_of(wire, name)
    assert [(t.name, t.error_code) for t in answer.topics] == [(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]

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


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("topic", [Topic(name=None), Topic(name="a", topic_id=b"\x05" * 16)])
def test_before_version_12_topics_go_by_name(wire: WireClient, version: int, topic: Any) -> None:
    answer = wire.send(m.MetadataRequest(topics=[topic]), version)
    assert [each.error_code for each in answer.topics] == [ErrorCode.INVALID_REQUEST]
    assert (answer.brokers, answer.controller_id) == ([], -1)


@pytest.mark.parametrize("version", [12, 13])
def test_neither_name_nor_id_fails_the_request(wire: WireClient, version: int) -> None:
    answer = wire.send(m.MetadataRequest(topics=[Topic(name=None)]), version)
    assert [each.error_code for each in answer.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert answer.error_code == (ErrorCode.UNKNOWN_SERVER_ERROR if version >= 13 else 0)
    assert answer.brokers == []


@pytest.mark.parametrize("version", range(8, 11))
def test_authorized_operations_of_the_cluster_in_versions_8_to_10(wire: WireClient, version: int) -> None:
    asked = m.MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    # create, alter, describe, cluster action, describe configs, alter configs, idempotent write
    expected = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
    assert wire.send(asked, version).cluster_authorized_operations == expected
    assert wire.send(m.MetadataRequest(topics=[]), version).cluster_authorized_operations == NO_OPERATIONS


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


@pytest.mark.parametrize("limit", [0, -1, 1])
def test_a_page_has_at_least_one_partition(wire: WireClient, name: str, limit: int) -> None:
    wire.create_topic(name, partitions=2)
    page = partitions_of(wire, name, limit=limit)
    assert [p.partition_index for p in page.topics[0].partitions] == [0]
    assert (page.next_cursor.topic_name, page.next_cursor.partition_index) == (name, 1)


@pytest.mark.parametrize(
    "where", ["a partition below 0", "a topic before the list", "a topic behind the list"]
)
def test_a_cursor_outside_the_list_is_42(wire: WireClient, name: str, where: str) -> None:
    wire.create_topic(f"{name}-a")
    wire.create_topic(f"{name}-b")
    names = {
        "a partition below 0": (f"{name}-a", -1),
        "a topic before the list": ("a", 0),
        "a topic behind the list": ("z", 0),
    }
    topic, partition = names[where]
    cursor = m.DescribeTopicPartitionsRequest.Cursor(topic_name=topic, partition_index=partition)
    page = partitions_of(wire, f"{name}-a", f"{name}-b", cursor=cursor)
    assert {t.error_code for t in page.topics} == {ErrorCode.INVALID_REQUEST}
    assert [t.partitions for t in page.topics] == [[], []]


def test_a_cursor_behind_a_topics_partitions_goes_on_with_the_next(wire: WireClient, name: str) -> None:
    wire.create_topic(f"{name}-a", partitions=2)
    wire.create_topic(f"{name}-b")
    cursor = m.DescribeTopicPartitionsRequest.Cursor(topic_name=f"{name}-a", partition_index=99)
    page = partitions_of(wire, f"{name}-a", f"{name}-b", cursor=cursor)
    assert [(t.name, len(t.partitions)) for t in page.topics] == [(f"{name}-a", 0), (f"{name}-b", 1)]


def test_no_names_mean_all_topics(wire: WireClient, topic: str) -> None:
    assert topic in [each.name for each in partitions_of(wire).topics]


def test_a_topic_named_twice_comes_once_and_a_bad_name_is_17(wire: WireClient, topic: str) -> None:
    assert [each.name for each in partitions_of(wire, topic, topic).topics] == [topic]
    assert [each.error_code for each in partitions_of(wire, "bad name").topics] == [17]

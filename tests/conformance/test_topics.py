"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords (protocol.md 4.4 and 7)."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

Create = m.CreateTopicsRequest
Delete = m.DeleteTopicsRequest
Grow = m.CreatePartitionsRequest
Trim = m.DeleteRecordsRequest


def create(
    wire: WireClient, *topics: m.CreateTopicsRequest.CreatableTopic, version: int = 7, **fields: Any
) -> Any:
    return wire.send(Create(topics=list(topics), **{"timeout_ms": 30_000, **fields}), version).topics


def one(
    name: str, partitions: int = 1, factor: int = 1, **fields: Any
) -> m.CreateTopicsRequest.CreatableTopic:
    return Create.CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **fields)


def code(wire: WireClient, *topics: m.CreateTopicsRequest.CreatableTopic, **fields: Any) -> ErrorCode:
    (result,) = create(wire, *topics, **fields)
    return ErrorCode(result.error_code)


def exists(wire: WireClient, name: str) -> bool:
    (topic,) = wire.metadata(name, allow_auto_topic_creation=False).topics
    return topic.error_code == 0


def await_topic(wire: WireClient, name: str) -> None:
    """Apache Kafka's metadata knows a new topic a moment after it is acknowledged."""
    wait_until(lambda: exists(wire, name), f"{name} to be there")


def await_no_topic(wire: WireClient, name: str) -> None:
    """The same for one that is deleted."""
    wait_until(lambda: not exists(wire, name), f"{name} to be gone")


def assigned(name: str, node: int, *rows: tuple[int, list[int]]) -> m.CreateTopicsRequest.CreatableTopic:
    places = [Create.CreatableReplicaAssignment(partition_index=p, broker_ids=ids) for p, ids in rows]
    return one(name, -1, -1, assignments=places)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(wire: WireClient, name: str, version: int) -> None:
    (result,) = create(wire, one(name, 3), version=version)
    assert (result.error_code, result.name) == (0, name)
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert {c.name: c.value for c in result.configs}["cleanup.policy"] == "delete"
    if version >= 7:
        assert result.topic_id != bytes(16)
    await_topic(wire, name)


def test_minus_one_means_the_brokers_default(wire: WireClient, name: str) -> None:
    (result,) = create(wire, one(name, -1, -1))
    assert (result.error_code, result.replication_factor) == (0, 1)
    assert result.num_partitions >= 1


def test_an_existing_topic_is_36_with_kafkas_words(wire: WireClient, topic: str) -> None:
    (result,) = create(wire, one(topic))
    assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert result.error_message == f"Topic '{topic}' already exists."


@pytest.mark.parametrize("bad", ["", ".", "..", " a", "a/b", "a" * 250, "ä"])
def test_a_bad_name_is_17(wire: WireClient, bad: str) -> None:
    assert code(wire, one(bad)) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_that_collide_as_metrics_are_17(wire: WireClient, name: str) -> None:
    assert code(wire, one(f"{name}.a_b")) == 0
    assert code(wire, one(f"{name}_a.b")) == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("partitions", [0, -2])
def test_no_partitions_are_37(wire: WireClient, name: str, partitions: int) -> None:
    assert code(wire, one(name, partitions)) == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("factor", [0, -2, 2, 100])
def test_replicas_without_brokers_are_38(wire: WireClient, name: str, factor: int) -> None:
    assert code(wire, one(name, 1, factor)) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert not exists(wire, name)


def test_too_many_partitions_are_44(wire: WireClient, name: str) -> None:
    assert code(wire, one(name, 100_001)) == ErrorCode.POLICY_VIOLATION


def test_assignments(wire: WireClient, name: str) -> None:
    node = wire.metadata().brokers[0].node_id
    (made,) = create(wire, assigned(name, node, (0, [node]), (1, [node])))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 1)
    invalid = {
        "unknown broker": assigned(f"{name}-x", node, (0, [node + 5])),
        "empty": assigned(f"{name}-x", node, (0, [])),
        "repeated": assigned(f"{name}-x", node, (0, [node, node])),
        "gap": assigned(f"{name}-x", node, (0, [node]), (2, [node])),
    }
    for what, topic in invalid.items():
        assert code(wire, topic) == ErrorCode.INVALID_REPLICA_ASSIGNMENT, what
    both = assigned(f"{name}-x", node, (0, [node]))
    both.num_partitions = 1
    assert code(wire, both) == ErrorCode.INVALID_REQUEST


def test_the_metadata_topic_is_nobodys(wire: WireClient) -> None:
    assert code(wire, one("__cluster_metadata")) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_gives_no_time_is_told_7_and_nothing_is_done(
    wire: WireClient, name: str, timeout_ms: int
) -> None:
    for version in (2, 7):
        assert code(wire, one(f"{name}-{version}"), version=version, timeout_ms=timeout_ms) == 7
        assert not exists(wire, f"{name}-{version}")
    wire.create_topic(name)
    assert grow(wire, name, 2, timeout_ms=timeout_ms) == ErrorCode.REQUEST_TIMED_OUT
    states = [Delete.DeleteTopicState(name=name)]
    (result,) = wire.send(Delete(topics=states, timeout_ms=timeout_ms), 6).responses
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert partitions(wire, name) == 1


def test_a_name_twice_is_one_42(wire: WireClient, name: str) -> None:
    assert code(wire, one(name), one(name)) == ErrorCode.INVALID_REQUEST
    assert not exists(wire, name)


CONFIGS = [
    ({"no.such.key": "1"}, ErrorCode.INVALID_CONFIG),
    ({"retention.ms": "abc"}, ErrorCode.INVALID_CONFIG),
    ({"retention.ms": "-2"}, ErrorCode.INVALID_CONFIG),
    ({"cleanup.policy": "none-such"}, ErrorCode.INVALID_CONFIG),
    ({"segment.bytes": "13"}, ErrorCode.INVALID_CONFIG),
    ({"compression.type": "lz5"}, ErrorCode.INVALID_CONFIG),
    ({"min.insync.replicas": "0"}, ErrorCode.INVALID_CONFIG),
    ({"retention.ms": None}, ErrorCode.INVALID_CONFIG),
    ({"retention.ms": "1000", "cleanup.policy": "compact,delete"}, ErrorCode.NONE),
    ({"message.timestamp.type": "LogAppendTime"}, ErrorCode.NONE),
]


@pytest.mark.parametrize(("configs", "error"), CONFIGS)
def test_configs_at_creation(wire: WireClient, name: str, configs: dict[str, str | None], error: int) -> None:
    given = [Create.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    assert code(wire, one(name, configs=given)) == error
    await_topic(wire, name) if error == 0 else not exists(wire, name)


def test_validate_only_creates_nothing(wire: WireClient, name: str) -> None:
    assert code(wire, one(name), validate_only=True) == 0
    assert not exists(wire, name)
    assert code(wire, one(name, 0), validate_only=True) == ErrorCode.INVALID_PARTITIONS


def test_one_bad_topic_does_not_stop_the_others(wire: WireClient, name: str) -> None:
    results = create(wire, one(name), one("bad name"))
    assert {r.name: r.error_code for r in results} == {name: 0, "bad name": 17}


@pytest.mark.parametrize("version", range(1, 7))
def test_every_version_deletes(wire: WireClient, topic: str, version: int) -> None:
    if version >= 6:
        request = Delete(topics=[Delete.DeleteTopicState(name=topic)], timeout_ms=30_000)
    else:
        request = Delete(topic_names=[topic], timeout_ms=30_000)
    assert [(r.name, r.error_code) for r in wire.send(request, version).responses] == [(topic, 0)]
    await_no_topic(wire, topic)


def delete(wire: WireClient, *states: m.DeleteTopicsRequest.DeleteTopicState) -> list[tuple[str | None, int]]:
    answer = wire.send(Delete(topics=list(states), timeout_ms=30_000), 6)
    return [(r.name, r.error_code) for r in answer.responses]


def test_deleting_by_id_and_what_is_missing(wire: WireClient, name: str) -> None:
    topic_id = wire.create_topic(name)
    State = Delete.DeleteTopicState
    assert delete(wire, State(name=None, topic_id=topic_id)) == [(name, 0)]
    assert delete(wire, State(name=f"{name}-x")) == [(f"{name}-x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert delete(wire, State(name=None, topic_id=b"\x04" * 16)) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]


def test_how_topics_to_delete_may_be_named(wire: WireClient, name: str) -> None:
    topic_id = wire.create_topic(name)
    State = Delete.DeleteTopicState

    def codes(*states: m.DeleteTopicsRequest.DeleteTopicState) -> list[int]:
        return [error for _, error in delete(wire, *states)]

    invalid = [ErrorCode.INVALID_REQUEST]
    assert codes(State(name=name, topic_id=topic_id)) == invalid
    assert codes(State(name=None)) == invalid
    assert codes(State(name=name), State(name=name)) == invalid
    assert codes(State(name=None, topic_id=topic_id), State(name=None, topic_id=topic_id)) == invalid
    assert codes() == []
    await_topic(wire, name)
    assert sorted(codes(State(name=name), State(name=None))) == [0, ErrorCode.INVALID_REQUEST]


def test_a_deleted_topic_comes_back_empty_with_another_id(wire: WireClient, name: str) -> None:
    first = wire.create_topic(name)
    wire.produce_values(name, b"a", b"b")
    assert delete(wire, Delete.DeleteTopicState(name=name)) == [(name, 0)]
    second = wire.create_topic(name)
    assert second != first
    # Apache Kafka's leader of the old log answers until the broker has heard of its end.
    wait_until(lambda: wire.list_offset(name, -1).offset == 0, "the log to be another one")
    assert wire.produce_values(name, b"c") == 0


def grow(wire: WireClient, name: str, count: int, version: int = 3, **fields: Any) -> int:
    topic = Grow.CreatePartitionsTopic(name=name, count=count, assignments=fields.pop("assignments", None))
    answer = wire.send(Grow(topics=[topic], **{"timeout_ms": 30_000, **fields}), version)
    return int(answer.results[0].error_code)


def partitions(wire: WireClient, name: str) -> int:
    return len(wire.metadata(name).topics[0].partitions)


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added(wire: WireClient, topic: str, version: int) -> None:
    assert grow(wire, topic, 3, version) == 0
    while partitions(wire, topic) != 3:
        pass
    while wire.list_offset(topic, -1, partition=2).error_code:
        pass
    assert wire.produce_values(topic, b"a", partition=2) == 0


def test_partitions_cannot_shrink_or_stay(wire: WireClient, topic: str) -> None:
    for count in (1, 0, -1):
        assert grow(wire, topic, count) == ErrorCode.INVALID_PARTITIONS
    assert grow(wire, f"{topic}-x", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert grow(wire, topic, 2, validate_only=True) == 0
    assert partitions(wire, topic) == 1


def test_what_cannot_grow(wire: WireClient, topic: str) -> None:
    asked = Grow.CreatePartitionsTopic(name=topic, count=2, assignments=None)
    twice = wire.send(Grow(topics=[asked, asked], timeout_ms=30_000), 3)
    assert [each.error_code for each in twice.results] == [ErrorCode.INVALID_REQUEST]
    assert wire.send(Grow(topics=[], timeout_ms=30_000), 3).results == []
    assert grow(wire, topic, 100_001) == ErrorCode.POLICY_VIOLATION
    assert grow(wire, topic, 2, assignments=[]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(wire, "bad name", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partitions(wire, topic) == 1


def test_assignments_of_new_partitions(wire: WireClient, topic: str) -> None:
    node = wire.metadata().brokers[0].node_id
    Place = Grow.CreatePartitionsAssignment
    for wrong in ([[node + 3]], [[]], [[node], [node]], [[node, node]]):
        places = [Place(broker_ids=ids) for ids in wrong]
        assert grow(wire, topic, 2, assignments=places) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(wire, topic, 2, assignments=[Place(broker_ids=[node])]) == 0


def trim(wire: WireClient, name: str, offset: int, partition: int = 0) -> tuple[int, int]:
    place = Trim.DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = Trim(topics=[Trim.DeleteRecordsTopic(name=name, partitions=[place])], timeout_ms=30_000)
    result = wire.send(request, 2).topics[0].partitions[0]
    return result.error_code, result.low_watermark


def test_records_are_deleted_up_to_an_offset(wire: WireClient, topic: str) -> None:
    wire.produce_values(topic, b"a", b"b", b"c")
    assert trim(wire, topic, 2) == (0, 2)
    assert wire.list_offset(topic, -2).offset == 2
    assert wire.fetch(topic, 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert wire.fetch(topic, 2).error_code == 0
    assert trim(wire, topic, 1) == (0, 2)
    assert trim(wire, topic, -1) == (0, 3)
    assert wire.produce_values(topic, b"d") == 3


@pytest.mark.parametrize("offset", [-2, -100, 4, 1000])
def test_offsets_outside_are_1(wire: WireClient, topic: str, offset: int) -> None:
    wire.produce_values(topic, b"a", b"b", b"c")
    assert trim(wire, topic, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_a_compacted_topic_keeps_its_records(wire: WireClient, name: str) -> None:
    wire.create_topic(name, cleanup_policy="compact")
    assert trim(wire, name, 0) == (ErrorCode.POLICY_VIOLATION, -1)
    assert trim(wire, f"{name}-x", 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert trim(wire, name, 0, partition=9) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)

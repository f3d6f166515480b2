"""OffsetCommit 1, which Kafka 4.0 removed (protocol.md section 1)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.group_member import Member, await_coordinator, settle
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient


@pytest.fixture
def member(either_old_broker: OttlaProcess | KafkaProcess, wire: WireClient, name: str) -> Iterator[Member]:
    await_coordinator(wire, name)
    with Member(either_old_broker.bootstrap_servers, name) as member:
        yield member


def fetched(member: Member, topic: str, version: int) -> tuple[int, str | None]:
    request = m.OffsetFetchRequest
    wanted = [request.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    answer = member.wire.send(request(group_id=member.group, topics=wanted), version)
    [partition] = answer.topics[0].partitions
    assert partition.error_code == ErrorCode.NONE
    return partition.committed_offset, partition.metadata


def test_a_group_without_members(member: Member, topic: str) -> None:
    assert member.commit(topic, 5, "here", 1) == ErrorCode.NONE
    assert fetched(member, topic, 1) == (5, "here")
    assert member.commit("unknown", 5, version=1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    member.generation = 3
    assert member.commit(topic, 6, version=1) in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    assert fetched(member, topic, 1) == (5, "here")


def test_a_group_with_members(member: Member, topic: str) -> None:
    settle(member)
    assert member.commit(topic, 5, version=1) == ErrorCode.NONE
    member.generation = 0
    assert member.commit(topic, 6, version=1) == ErrorCode.ILLEGAL_GENERATION
    member.id, member.generation = "stranger", 1
    assert member.commit(topic, 6, version=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetched(member, topic, 1) == (5, "")


def test_version_1_may_say_when(member: Member, topic: str) -> None:
    request = m.OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, commit_timestamp=1_700_000_000_000, committed_metadata=None
    )
    topics = [request.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    answer = member.wire.send(request(group_id=member.group, topics=topics), 1)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert fetched(member, topic, 1) == (5, "")

"""OffsetCommit: which partitions get as far as the coordinator, and what versions add."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.group.records import Stored
from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, commit, coordinate, fetched, settle

TOPIC = "t"
Commit = m.OffsetCommitRequest


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, NO_DELAY) as running:
        running.create(TOPIC, 2)
        coordinate(running)
        yield running


def stored(broker: HandlerBroker) -> Stored:
    manager = broker.ctx.groups.manager()
    row = manager.runtime.read(manager.partition_of(GROUP), lambda shard: shard.offsets.committed.row(GROUP))
    return row[(TOPIC, 0)]


def errors(answer: m.OffsetCommitResponse) -> list[tuple[str, int, int]]:
    return [(t.name, p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]


@pytest.mark.parametrize("version", range(10))
def test_every_version_commits(broker: HandlerBroker, version: int) -> None:
    assert errors(broker.call(commit(TOPIC, 7), version)) == [(TOPIC, 0, 0)]
    assert fetched(broker, TOPIC) == 7
    assert stored(broker)[:3] == (7, -1, "here")


def test_version_10_names_topics_by_id(broker: HandlerBroker) -> None:
    topic_id = broker.ctx.image.topics[TOPIC].topic_id
    request = commit(TOPIC, 7)
    [asked] = request.topics
    asked.name, asked.topic_id = "", topic_id
    missing = [
        Commit.OffsetCommitRequestTopic(topic_id=each, partitions=asked.partitions)
        for each in (b"\1" * 16, bytes(16))
    ]
    request.topics += missing
    answer = broker.call(request, 10)
    assert [(t.topic_id, t.partitions[0].error_code) for t in answer.topics] == [
        (topic_id, ErrorCode.NONE),
        (b"\1" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
        (bytes(16), ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert fetched(broker, TOPIC) == 7


def test_version_1_says_when(broker: HandlerBroker) -> None:
    request = commit(TOPIC, 7)
    request.topics[0].partitions[0].commit_timestamp = 1000
    broker.call(request, 1)
    assert stored(broker)[3] == 1000
    broker.call(commit(TOPIC, 7), 1)
    assert abs(stored(broker)[3] - broker.ctx.env.clock.now_ms()) < 60_000


@pytest.mark.parametrize("version", range(2, 5))
@pytest.mark.parametrize("retention_ms", [-1, 0, 1000])
def test_versions_2_to_4_say_how_long(broker: HandlerBroker, version: int, retention_ms: int) -> None:
    broker.call(commit(TOPIC, 7, retention_time_ms=retention_ms), version)
    _, _, _, commit_ms, expire_ms, _ = stored(broker)
    assert expire_ms == (-1 if retention_ms < 0 else commit_ms + retention_ms)


def test_the_leader_epoch_from_version_6(broker: HandlerBroker) -> None:
    request = commit(TOPIC, 7)
    request.topics[0].partitions[0].committed_leader_epoch = 3
    broker.call(request, 6)
    assert stored(broker)[1] == 3


def test_partitions_that_do_not_exist_stop_no_others(broker: HandlerBroker) -> None:
    request = commit(TOPIC, 7)
    partition = Commit.OffsetCommitRequestPartition
    request.topics[0].partitions += [
        partition(partition_index=2, committed_metadata=""),
        partition(partition_index=-1, committed_metadata=""),
        partition(partition_index=1, committed_offset=8, committed_metadata="x" * 4097),
    ]
    request.topics += commit("unknown", 1).topics
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors(broker.call(request, 9)) == [
        (TOPIC, 0, ErrorCode.NONE),
        (TOPIC, 2, missing),
        (TOPIC, -1, missing),
        (TOPIC, 1, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("unknown", 0, missing),
    ]
    assert fetched(broker, TOPIC) == 7


def test_the_coordinator_is_not_asked_about_nothing(broker: HandlerBroker) -> None:
    stranger = {"member_id": "stranger", "generation_id_or_member_epoch": 5}
    unknown = [("unknown", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert errors(broker.call(commit("unknown", 1, **stranger), 9)) == unknown
    assert errors(broker.call(commit(TOPIC, 1, topics=[], **stranger), 9)) == []


def test_a_members_commit(broker: HandlerBroker) -> None:
    member = settle(broker)
    for member_id, generation, error in [
        (member, 1, ErrorCode.NONE),
        (member, 0, ErrorCode.ILLEGAL_GENERATION),
        ("stranger", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, ErrorCode.UNKNOWN_MEMBER_ID),
    ]:
        request = commit(TOPIC, 5, member_id=member_id, generation_id_or_member_epoch=generation)
        assert errors(broker.call(request, 9)) == [(TOPIC, 0, error)]


@pytest.mark.parametrize("version", range(10))
def test_without_the_topic_there_is_no_coordinator(tmp_path: Path, version: int) -> None:
    with HandlerBroker(tmp_path / "other") as broker:
        broker.create(TOPIC)
        assert errors(broker.call(commit(TOPIC, 1), version)) == [(TOPIC, 0, ErrorCode.NOT_COORDINATOR)]

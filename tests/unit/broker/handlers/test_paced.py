"""Work for many things in pieces: the answers are those that come in one go."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.handlers.later import Later
from broker.handlers.paced import paced
from protocol import messages as m
from runtime.pieces import Pieces, split
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, commit, coordinate

UNKNOWN_ID = bytes(15) + b"\1"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandlerBroker]:
    path: Path = tmp_path_factory.mktemp("pieces")
    with HandlerBroker(path, NO_DELAY) as running:
        for name in ("a", "b"):
            running.create(name, 3)
            running.produce(name, 1, [(1000, b"x"), (2000, b"y")])
        coordinate(running)
        running.call(commit("a", 7), 9)
        yield running


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one thing each."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(("broker.", "replication.", "runtime.")):
            for name in ("AT_ONCE", "_AT_ONCE", "GROUPS_AT_ONCE", "PARTITIONS_AT_ONCE", "CELLS_AT_ONCE"):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(Pieces.of, "__defaults__", (1,))
    monkeypatch.setattr(split, "__defaults__", (1,))


def names(*more: str) -> list[str]:
    return ["b", "none", "a b", "a", "a", *more]


def metadata(version: int, ids: bool = False) -> m.MetadataRequest:
    topic = m.MetadataRequest.MetadataRequestTopic
    if ids:
        return m.MetadataRequest(topics=[topic(name=None, topic_id=UNKNOWN_ID), topic(name="a")])
    topics = [topic(name=name) for name in names()]
    return m.MetadataRequest(topics=topics, allow_auto_topic_creation=version < 4)


def create(**fields: Any) -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.CreatableTopic
    topics = [topic(name=name, num_partitions=1, replication_factor=1) for name in names("new", "newer")]
    return m.CreateTopicsRequest(topics=topics, timeout_ms=1000, validate_only=True, **fields)


def grow() -> m.CreatePartitionsRequest:
    topic = m.CreatePartitionsRequest.CreatePartitionsTopic
    topics = [topic(name=name, count=5) for name in names()]
    return m.CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=True)


def delete(version: int) -> m.DeleteTopicsRequest:
    topic = m.DeleteTopicsRequest.DeleteTopicState
    gone = ["none", "nothing", "none"]
    if version < 6:
        return m.DeleteTopicsRequest(topic_names=gone, timeout_ms=1000)
    return m.DeleteTopicsRequest(topics=[topic(name=name) for name in gone], timeout_ms=1000)


def alter(incremental: bool) -> Any:
    request: Any = m.IncrementalAlterConfigsRequest if incremental else m.AlterConfigsRequest
    resources = [
        request.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[request.AlterableConfig(name=key, value="1")]
        )
        for kind, name, key in [
            (2, "a", "retention.ms"),
            (2, "b", "no.such.key"),
            (2, "none", "retention.ms"),
            (9, "a", "retention.ms"),
            (4, "7", "x"),
        ]
    ]
    return request(resources=resources, validate_only=True)


def offsets() -> m.ListOffsetsRequest:
    request = m.ListOffsetsRequest
    asked = [(0, -1), (1, -2), (1, 5), (2, 5), (9, -1), (2, 5)]
    topics = [
        request.ListOffsetsTopic(
            name=name,
            partitions=[request.ListOffsetsPartition(partition_index=i, timestamp=at) for i, at in asked],
        )
        for name in names()
    ]
    return request(topics=[*topics, request.ListOffsetsTopic(name="b")])


def epochs() -> m.OffsetForLeaderEpochRequest:
    request = m.OffsetForLeaderEpochRequest
    places = [request.OffsetForLeaderPartition(partition=i, leader_epoch=0) for i in (0, 1, 7)]
    topics = [request.OffsetForLeaderTopic(topic=name, partitions=places) for name in names()]
    return request(topics=[*topics, request.OffsetForLeaderTopic(topic="b")])


def delete_records() -> m.DeleteRecordsRequest:
    request = m.DeleteRecordsRequest
    places = [request.DeleteRecordsPartition(partition_index=i, offset=at) for i, at in ((0, 0), (1, 99))]
    topics = [request.DeleteRecordsTopic(name=name, partitions=places) for name in names()]
    return request(topics=[*topics, request.DeleteRecordsTopic(name="b")], timeout_ms=1000)


def pages() -> m.DescribeTopicPartitionsRequest:
    topic = m.DescribeTopicPartitionsRequest.TopicRequest
    return m.DescribeTopicPartitionsRequest(
        topics=[topic(name=name) for name in names()], response_partition_limit=4
    )


def log_dirs() -> m.DescribeLogDirsRequest:
    topic = m.DescribeLogDirsRequest.DescribableLogDirTopic
    return m.DescribeLogDirsRequest(topics=[topic(topic=name, partitions=[0, 2, 9]) for name in names()])


def leave() -> m.LeaveGroupRequest:
    member = m.LeaveGroupRequest.MemberIdentity
    members = [member(member_id=f"m{i}", group_instance_id=None) for i in range(3)]
    return m.LeaveGroupRequest(group_id=GROUP, members=members)


def fetch_offsets(version: int, everything: bool = False) -> m.OffsetFetchRequest:
    request = m.OffsetFetchRequest
    if version < 8:
        named = [request.OffsetFetchRequestTopic(name=name, partition_indexes=[0, 1, 0]) for name in names()]
        return request(group_id=GROUP, topics=None if everything else named)
    topic = request.OffsetFetchRequestTopics
    if version >= 10:
        topics = [topic(topic_id=UNKNOWN_ID, partition_indexes=[0, 1])]
    else:
        topics = [topic(name=name, partition_indexes=[0, 1, 0]) for name in names()]
    return request(
        groups=[
            request.OffsetFetchRequestGroup(group_id=group, topics=None if everything else topics)
            for group in (GROUP, "none", GROUP, GROUP)
        ]
    )


def commit_offsets() -> m.OffsetCommitRequest:
    request = m.OffsetCommitRequest
    place = request.OffsetCommitRequestPartition
    places = [place(partition_index=i, committed_offset=3, committed_metadata="") for i in (0, 1, 9)]
    topics = [request.OffsetCommitRequestTopic(name=name, partitions=places) for name in ("none", "b")]
    return request(group_id="other", topics=topics)


def delete_offsets() -> m.OffsetDeleteRequest:
    request = m.OffsetDeleteRequest
    places = [request.OffsetDeleteRequestPartition(partition_index=i) for i in (0, 1, 9)]
    topics = [request.OffsetDeleteRequestTopic(name=name, partitions=places) for name in ("none", "b")]
    return request(group_id=GROUP, topics=topics)


def share_offsets() -> m.DescribeShareGroupOffsetsRequest:
    request = m.DescribeShareGroupOffsetsRequest
    topic = request.DescribeShareGroupOffsetsRequestTopic
    topics = [topic(topic_name=name, partitions=[0, 1, 9]) for name in ("a", "none", "b")]
    group = request.DescribeShareGroupOffsetsRequestGroup
    return request(groups=[group(group_id="s", topics=topics), group(group_id="t", topics=topics)])


def describe_producers() -> m.DescribeProducersRequest:
    """Partition 1 of b has one of them; it is told of twice."""
    topic = m.DescribeProducersRequest.TopicRequest
    return m.DescribeProducersRequest(
        topics=[topic(name=name, partition_indexes=[0, 1, 9, 1]) for name in names("b")]
    )


def write_markers() -> m.WriteTxnMarkersRequest:
    request = m.WriteTxnMarkersRequest
    topics = [
        request.WritableTxnMarkerTopic(name=name, partition_indexes=[0, 1, 9]) for name in ("a", "none")
    ]
    ends = [
        request.WritableTxnMarker(producer_id=each, producer_epoch=3, coordinator_epoch=2, topics=topics)
        for each in (7, 8)
    ]
    return request(markers=ends)


def add_partitions() -> m.AddPartitionsToTxnRequest:
    request = m.AddPartitionsToTxnRequest
    topics = [request.AddPartitionsToTxnTopic(name=name, partitions=[0, 1]) for name in ("a", "b")]
    transaction = request.AddPartitionsToTxnTransaction
    return request(
        transactions=[
            transaction(transactional_id=name, verify_only=name == "c", topics=topics) for name in "abc"
        ]
    )


@pytest.mark.parametrize(
    ("request_made", "version"),
    [
        (metadata(1), 1),
        (metadata(9), 9),
        (metadata(11, ids=True), 11),
        (metadata(12, ids=True), 12),
        (m.MetadataRequest(topics=None), 12),
        (create(), 5),
        (grow(), 3),
        (delete(5), 5),
        (delete(6), 6),
        (alter(False), 2),
        (alter(True), 1),
        (offsets(), 7),
        (epochs(), 4),
        (delete_records(), 2),
        (pages(), 0),
        (log_dirs(), 3),
        (leave(), 5),
        (fetch_offsets(1), 1),
        (fetch_offsets(7), 7),
        (fetch_offsets(7, everything=True), 7),
        (fetch_offsets(8), 8),
        (fetch_offsets(9, everything=True), 9),
        (fetch_offsets(10), 10),
        (commit_offsets(), 9),
        (delete_offsets(), 0),
        (share_offsets(), 1),
        (write_markers(), 1),
        (describe_producers(), 0),
        (add_partitions(), 4),
    ],
    ids=lambda value: f"{type(value).__name__}" if isinstance(value, m.Message) else str(value),
)
def test_the_answer_is_the_same(
    broker: HandlerBroker, request: pytest.FixtureRequest, request_made: Any, version: int
) -> None:
    at_once = broker.call(request_made, version)
    request.getfixturevalue("in_pieces")
    assert broker.call(request_made, version) == at_once


def test_few_things_are_done_at_once() -> None:
    done: list[int] = []
    assert paced(Pieces(), [1, 2], done.append, lambda: sum(done), at_once=2) == 3


def test_many_are_done_in_pieces() -> None:
    done: list[Any] = []

    async def main() -> Any:
        pieces = Pieces()
        first = asyncio.ensure_future(paced(pieces, [1, 2, 3], done.append, lambda: "all", at_once=2))
        other = asyncio.ensure_future(paced(pieces, [7, 8, 9], done.append, lambda: "too", at_once=2))
        return await first, await other

    assert asyncio.run(main()) == ("all", "too")
    assert done == [1, 2, 7, 8, 3, 9]


def test_a_thing_counts_for_as_much_as_it_weighs() -> None:
    done: list[list[int]] = []

    async def main() -> Any:
        pieces = Pieces()
        work: Any = paced(
            pieces, [1, 1, 5, 1, 2], lambda n: done[-1].append(n), lambda: "all", 3, lambda n: n
        )
        task = asyncio.ensure_future(work)
        while not task.done():
            done.append([])
            await asyncio.sleep(0)
        return task.result()

    assert asyncio.run(main()) == "all"
    assert [piece for piece in done if piece] == [[1, 1], [5], [1, 2]]
    alone: list[int] = []
    assert paced(Pieces(), [9], alone.append, lambda: alone, 3, lambda n: n) == [9]


def test_an_answer_that_comes_later_is_waited_for() -> None:
    later = Later()

    async def main() -> Any:
        asyncio.get_running_loop().call_later(0, later.give, "late")
        return await paced(Pieces(), [1, 2], lambda _: None, later.now_or_later, at_once=1)

    assert asyncio.run(main()) == "late"


def test_what_fails_fails_the_answer() -> None:
    async def main() -> Any:
        return await paced(Pieces(), ["1", "x"], int, lambda: "all", at_once=1)

    with pytest.raises(ValueError, match="'x'"):
        asyncio.run(main())

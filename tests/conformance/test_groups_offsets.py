"""Committing and fetching offsets (coordinators.md 2.6, 3.6, 7.41 to 7.45)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.group_member import Member, form, reach, settle
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

NewMember = Callable[..., Member]
Commit = m.OffsetCommitRequest
Fetch = m.OffsetFetchRequest
UNKNOWN_ID = b"\x01" * 16


def partition(index: int, offset: int, metadata: str | None = "", epoch: int = -1) -> Any:
    return Commit.OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset,
        committed_metadata=metadata,
        committed_leader_epoch=epoch,
    )


def commit(
    wire: WireClient, group: str, wanted: dict[str, list[Any]], version: int = 9, **fields: Any
) -> dict[str, list[tuple[int, int]]]:
    topics = [Commit.OffsetCommitRequestTopic(name=name, partitions=each) for name, each in wanted.items()]
    answer = wire.send(Commit(group_id=group, topics=topics, **fields), version)
    return {
        topic.name: [(each.partition_index, each.error_code) for each in topic.partitions]
        for topic in answer.topics
    }


def fetch(
    wire: WireClient, group: str, wanted: dict[str, list[int]] | None, version: int = 9, **fields: Any
) -> dict[str, list[tuple[int, int, int, str | None, int]]]:
    """(partition, offset, leader epoch, metadata, error) by topic, whatever the version."""
    if version < 8:
        topics = None
        if wanted is not None:
            topics = [Fetch.OffsetFetchRequestTopic(name=n, partition_indexes=i) for n, i in wanted.items()]
        found = wire.send(Fetch(group_id=group, topics=topics, **fields), version)
    else:
        more = None
        if wanted is not None:
            more = [Fetch.OffsetFetchRequestTopics(name=n, partition_indexes=i) for n, i in wanted.items()]
        asked = Fetch.OffsetFetchRequestGroup(group_id=group, topics=more)
        [found] = wire.send(Fetch(groups=[asked], **fields), version).groups
        assert found.group_id == group
    assert found.error_code == ErrorCode.NONE
    return {
        topic.name: [
            (p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
            for p in topic.partitions
        ]
        for topic in found.topics
    }


def offset(wire: WireClient, group: str, topic: str) -> int:
    [(_, found, _, _, error)] = fetch(wire, group, {topic: [0]})[topic]
    assert error == ErrorCode.NONE
    return found


@pytest.fixture
def group(new_member: NewMember) -> str:
    """The name of a group that is not there; the coordinator is."""
    return new_member().group


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_commits(wire: WireClient, group: str, topic: str, version: int) -> None:
    assert commit(wire, group, {topic: [partition(0, 7, "here", 0)]}, version) == {topic: [(0, 0)]}
    epoch = 0 if version >= 6 else -1
    assert fetch(wire, group, {topic: [0]}) == {topic: [(0, 7, epoch, "here", 0)]}


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version_fetches(wire: WireClient, group: str, topic: str, version: int) -> None:
    commit(wire, group, {topic: [partition(0, 7, "here", 3)]})
    epoch = 3 if version >= 5 else -1
    wanted = {topic: [0, 5], "unknown": [0]}
    assert fetch(wire, group, wanted, version) == {
        topic: [(0, 7, epoch, "here", 0), (5, -1, -1, "", 0)],
        "unknown": [(0, -1, -1, "", 0)],
    }
    if version >= 2:
        assert fetch(wire, group, None, version) == {topic: [(0, 7, epoch, "here", 0)]}
    assert fetch(wire, group, {}, version) == {}


@pytest.mark.parametrize("version", range(1, 10))
def test_an_absent_group_has_no_offsets(wire: WireClient, group: str, topic: str, version: int) -> None:
    assert fetch(wire, group, {topic: [0]}, version) == {topic: [(0, -1, -1, "", 0)]}
    if version >= 2:
        assert fetch(wire, group, None, version) == {}


def test_version_10_names_topics_by_id(wire: WireClient, group: str, name: str) -> None:
    topic_id = wire.create_topic(name, 2)
    topics = [
        Commit.OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition(0, 4), partition(9, 4)]),
        Commit.OffsetCommitRequestTopic(topic_id=UNKNOWN_ID, partitions=[partition(0, 4)]),
        Commit.OffsetCommitRequestTopic(topic_id=bytes(16), partitions=[partition(0, 4)]),
    ]
    answer = wire.send(Commit(group_id=group, topics=topics), 10)
    assert sorted(
        (bytes(topic.topic_id), each.partition_index, each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    ) == sorted(
        [
            (topic_id, 0, ErrorCode.NONE),
            (topic_id, 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (UNKNOWN_ID, 0, ErrorCode.UNKNOWN_TOPIC_ID),
            (bytes(16), 0, ErrorCode.UNKNOWN_TOPIC_ID),
        ]
    )
    asked = Fetch.OffsetFetchRequestGroup(
        group_id=group,
        topics=[
            Fetch.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0, 1])
            for each in (topic_id, UNKNOWN_ID)
        ],
    )
    [found] = wire.send(Fetch(groups=[asked]), 10).groups
    assert sorted(
        (
            bytes(t.topic_id),
            p.partition_index,
            p.committed_offset,
            p.committed_leader_epoch,
            p.metadata,
            p.error_code,
        )
        for t in found.topics
        for p in t.partitions
    ) == sorted(
        [
            (topic_id, 0, 4, -1, "", 0),
            (topic_id, 1, -1, -1, "", 0),
            (UNKNOWN_ID, 0, -1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID),
            (UNKNOWN_ID, 1, -1, -1, "", ErrorCode.UNKNOWN_TOPIC_ID),
        ]
    )
    everything = Fetch.OffsetFetchRequestGroup(group_id=group, topics=None)
    [found] = wire.send(Fetch(groups=[everything]), 10).groups
    [topic] = found.topics
    assert (topic.topic_id, [(p.partition_index, p.committed_offset) for p in topic.partitions]) == (
        topic_id,
        [(0, 4)],
    )


@pytest.mark.parametrize("version", [8, 9])
def test_many_groups_at_once(wire: WireClient, group: str, topic: str, version: int) -> None:
    commit(wire, group, {topic: [partition(0, 7)]})
    wanted = [Fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    asked = [
        Fetch.OffsetFetchRequestGroup(group_id=each, topics=wanted)
        for each in (group, f"{group}-absent", group, "")
    ]
    answer = wire.send(Fetch(groups=asked), version)
    found = [
        (each.group_id, each.error_code, [p.committed_offset for t in each.topics for p in t.partitions])
        for each in answer.groups
    ]
    assert sorted(found) == sorted(
        [(group, 0, [7]), (f"{group}-absent", 0, [-1]), (group, 0, [7]), ("", 0, [-1])]
    )
    assert wire.send(Fetch(groups=[]), version).groups == []


def test_an_older_offset_and_negative_ones(wire: WireClient, group: str, topic: str) -> None:
    for value in (10, 3, 0, 2**63 - 1, -1, -2):
        assert commit(wire, group, {topic: [partition(0, value)]}) == {topic: [(0, 0)]}
        assert offset(wire, group, topic) == value


def test_one_partition_twice(wire: WireClient, group: str, topic: str) -> None:
    assert commit(wire, group, {topic: [partition(0, 1), partition(0, 2)]}) == {topic: [(0, 0), (0, 0)]}
    assert offset(wire, group, topic) == 2


def test_no_metadata_is_empty_metadata(wire: WireClient, group: str, topic: str) -> None:
    commit(wire, group, {topic: [partition(0, 1, None)]})
    assert fetch(wire, group, {topic: [0]})[topic] == [(0, 1, -1, "", 0)]


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("x" * 4096, ErrorCode.NONE),
        ("x" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("ä" * 4096, ErrorCode.NONE),
        ("ä" * 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("😀" * 2048, ErrorCode.NONE),
        ("😀" * 2048 + "x", ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
    ids=["4096", "4097", "4096 of two bytes", "4097 of two bytes", "2048 pairs", "one more"],
)
def test_metadata_has_4096_units(
    wire: WireClient, group: str, name: str, metadata: str, error: ErrorCode
) -> None:
    wire.create_topic(name, 2)
    wanted = {name: [partition(0, 1, metadata), partition(1, 1)]}
    assert commit(wire, group, wanted) == {name: [(0, error), (1, 0)]}
    [first, second] = fetch(wire, group, {name: [0, 1]})[name]
    assert first == ((0, 1, -1, metadata, 0) if error == 0 else (0, -1, -1, "", 0))
    assert second == (1, 1, -1, "", 0)


def test_unknown_partitions_do_not_stop_the_others(wire: WireClient, group: str, topic: str) -> None:
    wanted = {topic: [partition(0, 1), partition(1, 1), partition(-1, 1)], "unknown": [partition(0, 1)]}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = commit(wire, group, wanted)
    assert {topic: sorted(each) for topic, each in found.items()} == {
        topic: [(-1, unknown), (0, 0), (1, unknown)],
        "unknown": [(0, unknown)],
    }
    assert offset(wire, group, topic) == 1


def test_without_a_partition_that_exists_nobody_is_asked(wire: WireClient, group: str) -> None:
    fields: dict[str, Any] = {"member_id": "stranger", "generation_id_or_member_epoch": 5}
    unknown = {"unknown": [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]}
    assert commit(wire, group, {"unknown": [partition(0, 1)]}, **fields) == unknown
    assert commit(wire, group, {}, **fields) == {}


def test_the_group_without_a_name(wire: WireClient, new_member: NewMember, topic: str) -> None:
    new_member()
    assert commit(wire, "", {topic: [partition(0, 6)]}) == {topic: [(0, 0)]}
    assert offset(wire, "", topic) == 6


@pytest.mark.parametrize("version", range(2, 10))
def test_a_group_that_is_not_there_has_no_generation(new_member: NewMember, topic: str, version: int) -> None:
    member = new_member()
    member.id, member.generation = "stranger", 1
    old = ErrorCode.ILLEGAL_GENERATION
    assert member.commit(topic, 1, version=version) == (old if version < 9 else ErrorCode.GROUP_ID_NOT_FOUND)
    member.generation = -1
    assert member.commit(topic, 1, version=version) == ErrorCode.NONE
    assert member.describe().group_state == "Empty"


@pytest.mark.parametrize("version", range(2, 10))
def test_who_may_commit_to_a_group_of_offsets(new_member: NewMember, topic: str, version: int) -> None:
    member = new_member()
    assert member.commit(topic, 1, version=version) == ErrorCode.NONE
    member.id = "stranger"
    assert member.commit(topic, 2, version=version) == ErrorCode.NONE
    member.generation = 0
    assert member.commit(topic, 3, version=version) == ErrorCode.UNKNOWN_MEMBER_ID
    assert offset(member.wire, member.group, topic) == 2


def test_who_may_commit_to_an_empty_group(new_member: NewMember, topic: str) -> None:
    member = new_member()
    settle(member)
    member.leave()
    assert member.commit(topic, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    member.generation = -1
    assert member.commit(topic, 2) == ErrorCode.NONE
    member.instance_id = "i"
    assert member.commit(topic, 3) == ErrorCode.NONE
    member.generation = 2
    assert member.commit(topic, 4) == ErrorCode.UNKNOWN_MEMBER_ID
    assert offset(member.wire, member.group, topic) == 3


def test_who_may_commit_to_a_stable_group(new_member: NewMember, topic: str) -> None:
    member = new_member()
    settle(member)
    known = member.id
    for id_, generation, instance, error in [
        ("", -1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (known, -1, None, ErrorCode.ILLEGAL_GENERATION),
        ("", 1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (known, 0, None, ErrorCode.ILLEGAL_GENERATION),
        (known, 2, None, ErrorCode.ILLEGAL_GENERATION),
        ("stranger", 1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        (known, 1, "i", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, "i", ErrorCode.UNKNOWN_MEMBER_ID),
        (known, 1, None, ErrorCode.NONE),
    ]:
        member.id, member.generation, member.instance_id = id_, generation, instance
        assert member.commit(topic, 9) == error, (id_, generation, instance)


def test_commits_during_a_rebalance(new_member: NewMember, topic: str) -> None:
    one, other = new_member(), new_member()
    leader = form(one, other)
    [follower] = {one, other} - {leader}
    assert follower.commit(topic, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    leader.sync({})
    assert follower.commit(topic, 2) == ErrorCode.NONE
    assert follower.sync().error_code == 0
    posted = leader.post_join()
    reach(follower, "PreparingRebalance")
    assert follower.commit(topic, 3) == ErrorCode.NONE
    assert offset(follower.wire, follower.group, topic) == 3
    follower.join()
    assert leader.joined(posted).error_code == 0
    assert follower.commit(topic, 4) == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("version", range(7, 10))
def test_offsets_that_no_transaction_holds_are_stable(
    wire: WireClient, group: str, topic: str, version: int
) -> None:
    commit(wire, group, {topic: [partition(0, 7)]})
    found = fetch(wire, group, {topic: [0]}, version, require_stable=True)
    assert found == {topic: [(0, 7, -1, "", 0)]}


def test_a_deleted_topic_takes_its_offsets_along(wire: WireClient, group: str, topic: str, name: str) -> None:
    kept = f"{name}-kept"
    wire.create_topic(kept)
    commit(wire, group, {topic: [partition(0, 7)], kept: [partition(0, 8)]})
    states = m.DeleteTopicsRequest.DeleteTopicState
    wire.send(m.DeleteTopicsRequest(topics=[states(name=topic)], timeout_ms=30_000), 6)
    wait_until(lambda: fetch(wire, group, None) == {kept: [(0, 8, -1, "", 0)]}, "the offsets to go")
    wait_until(
        lambda: wire.metadata(topic, allow_auto_topic_creation=False).topics[0].error_code == 3, "the end"
    )
    wire.create_topic(topic)
    assert offset(wire, group, topic) == -1


@pytest.mark.parametrize("member_id", [None, "stranger"])
def test_version_9_may_name_a_member(new_member: NewMember, topic: str, member_id: str | None) -> None:
    """Members of classic groups have no epoch, so nobody is refused."""
    member = new_member()
    settle(member)
    assert member.commit(topic, 5) == ErrorCode.NONE
    asked = Fetch.OffsetFetchRequestGroup(
        group_id=member.group,
        member_id=member_id,
        member_epoch=-1 if member_id is None else 7,
        topics=[Fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])],
    )
    [found] = member.wire.send(Fetch(groups=[asked]), 9).groups
    assert (found.error_code, found.topics[0].partitions[0].committed_offset) == (0, 5)

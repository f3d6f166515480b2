"""Offsets of consumer groups (KIP-848): who may commit, fetch and delete them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.consumer_member import ConsumerMember
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

New = Callable[..., ConsumerMember]


def commit(
    wire: WireClient, group: str, member_id: str, epoch: int, *partitions: int, version: int = 9
) -> list[E]:
    request = m.OffsetCommitRequest
    asked = [
        request.OffsetCommitRequestPartition(
            partition_index=each, committed_offset=7, committed_metadata="", committed_leader_epoch=-1
        )
        for each in partitions or (0,)
    ]
    topics = [request.OffsetCommitRequestTopic(name=group, partitions=asked)]
    answer = wire.send(
        request(group_id=group, member_id=member_id, generation_id_or_member_epoch=epoch, topics=topics),
        version,
    )
    return [E(each.error_code) for each in answer.topics[0].partitions]


def fetch(wire: WireClient, group: str, member_id: str | None, epoch: int, *, stable: bool = False) -> Any:
    request = m.OffsetFetchRequest
    asked = request.OffsetFetchRequestGroup(
        group_id=group, member_id=member_id, member_epoch=epoch, topics=None
    )
    [found] = wire.send(request(groups=[asked], require_stable=stable), 9).groups
    offsets = {
        each.partition_index: each.committed_offset for topic in found.topics for each in topic.partitions
    }
    return E(found.error_code), offsets


def test_a_member_commits_at_its_epoch(member: New, wire: WireClient, name: str) -> None:
    first = member("a")
    first.join()
    epoch = first.epoch
    assert commit(wire, name, "a", epoch, 0, 1) == [E.NONE, E.NONE]
    assert commit(wire, name, "a", epoch + 1) == [E.STALE_MEMBER_EPOCH]
    assert commit(wire, name, "stranger", epoch) == [E.UNKNOWN_MEMBER_ID]
    assert commit(wire, name, "", -1) == [E.UNKNOWN_MEMBER_ID]
    assert commit(wire, name, "a", epoch, version=8) == [E.UNSUPPORTED_VERSION]
    assert fetch(wire, name, None, -1) == (E.NONE, {0: 7, 1: 7})


def test_a_commit_at_an_older_epoch_is_good_for_what_the_member_has_since(
    member: New, wire: WireClient, name: str
) -> None:
    first, second = member("a"), member("b")
    first.join()
    old = first.epoch
    second.join()
    first.settle(second)
    mine, theirs = first.partitions()[0], second.partitions()[0]
    assert first.epoch > old
    assert commit(wire, name, "a", old, mine) == [E.NONE]
    assert commit(wire, name, "a", old, theirs) == [E.STALE_MEMBER_EPOCH]
    assert commit(wire, name, "a", old, mine, theirs) == [E.STALE_MEMBER_EPOCH] * 2
    assert commit(wire, name, "b", second.epoch - 1, theirs) == [E.STALE_MEMBER_EPOCH]
    assert commit(wire, name, "a", first.epoch, theirs) == [E.NONE]
    assert fetch(wire, name, None, -1) == (E.NONE, {mine: 7, theirs: 7})


def test_offsets_are_fetched_at_the_members_epoch_or_without_a_member(
    member: New, wire: WireClient, name: str
) -> None:
    first = member("a")
    first.join()
    commit(wire, name, "a", first.epoch)
    for stable in (False, True):
        assert fetch(wire, name, "a", first.epoch, stable=stable) == (E.NONE, {0: 7})
        assert fetch(wire, name, "a", first.epoch - 1, stable=stable) == (E.STALE_MEMBER_EPOCH, {})
        assert fetch(wire, name, "b", first.epoch, stable=stable) == (E.UNKNOWN_MEMBER_ID, {})
        assert fetch(wire, name, None, -1, stable=stable) == (E.NONE, {0: 7})


def test_an_empty_group_takes_commits_of_nobody(member: New, wire: WireClient, name: str) -> None:
    first = member("a")
    first.join()
    epoch = first.epoch
    first.leave()
    assert commit(wire, name, "", -1) == [E.NONE]
    assert commit(wire, name, "a", epoch) == [E.UNKNOWN_MEMBER_ID]


def test_a_group_of_offsets_alone_becomes_a_consumer_group(member: New, wire: WireClient, name: str) -> None:
    assert commit(wire, name, "", -1) == [E.NONE]
    first = member("a")
    assert first.join().error_code == E.NONE
    assert fetch(wire, name, "a", first.epoch) == (E.NONE, {0: 7})


def test_offsets_of_subscribed_topics_are_not_deleted(member: New, wire: WireClient, name: str) -> None:
    wire.create_topic(f"{name}-other")
    first = member("a")
    first.join()
    commit(wire, name, "a", first.epoch)
    request = m.OffsetDeleteRequest
    one = [request.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [request.OffsetDeleteRequestTopic(name=each, partitions=one) for each in (name, f"{name}-other")]
    answer = wire.send(request(group_id=name, topics=topics), 0)
    errors = {topic.name: topic.partitions[0].error_code for topic in answer.topics}
    assert errors == {name: E.GROUP_SUBSCRIBED_TO_TOPIC, f"{name}-other": E.NONE}
    first.leave()
    answer = wire.send(request(group_id=name, topics=topics[:1]), 0)
    assert answer.topics[0].partitions[0].error_code == E.NONE
    assert fetch(wire, name, None, -1) == (E.NONE, {})


def test_the_offsets_of_a_deleted_topic_go(member: New, wire: WireClient, name: str) -> None:
    first = member("a")
    first.join()
    commit(wire, name, "a", first.epoch)
    wire.send(m.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5)
    wait_until(lambda: fetch(wire, name, None, -1) == (E.NONE, {}), "the offsets to go")
    wait_until(lambda: first.beat(owned=first.has).member_epoch == 3, "a new epoch")
    assert first.has == {}

"""ShareGroupHeartbeat, ShareGroupDescribe and what others see of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.consumer_member import ConsumerMember
from tests.support.group_member import Member, await_coordinator, create_for_groups
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.share_group_member import ShareGroupMember
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

New = Callable[..., ShareGroupMember]
ALL = [0, 1, 2, 3]


@pytest.fixture
def share_member(
    either_broker: OttlaProcess | KafkaProcess, name: str, topic_id: bytes, wire: WireClient
) -> Iterator[New]:
    """Makes members of a share group of the test's own, which subscribe to its topic."""
    await_coordinator(wire, name)
    with ExitStack() as members:
        yield lambda member_id="a", topics=(name,): members.enter_context(
            ShareGroupMember(either_broker.bootstrap_servers, name, member_id, topics)
        )


def describe(wire: WireClient, group: str) -> Any:
    [found] = wire.send(m.ShareGroupDescribeRequest(group_ids=[group]), 1).groups
    return found


def assigned(member: Any) -> dict[str, list[int]]:
    return {each.topic_name: sorted(each.partitions) for each in member.assignment.topic_partitions}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"member_id": ""}, None),
        ({"member_id": "m" * 37}, None),
        ({"member_id": "  "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_requests_that_are_wrong_whatever_the_group(
    share_member: New, wire: WireClient, name: str, fields: dict[str, Any], text: str | None
) -> None:
    answer = share_member().join(**fields)
    assert (answer.error_code, answer.error_message) == (E.INVALID_REQUEST, text)
    assert describe(wire, name).error_code == E.GROUP_ID_NOT_FOUND


def test_a_group_begins_with_its_first_member(
    share_member: New, wire: WireClient, name: str, topic_id: bytes
) -> None:
    first = share_member("a")
    answer = first.beat(member_epoch=5)
    assert (answer.error_code, answer.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        f"Share group {name} not found.",
    )
    answer = first.leave()
    assert (answer.error_code, answer.error_message) == (E.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
    answer = first.join()
    assert (answer.error_code, answer.error_message) == (E.NONE, None)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5000)
    assert answer.assignment.topic_partitions == []
    first.settle({topic_id: ALL})
    assert first.epoch == 3
    stranger = share_member("b")
    text = f"Member b is not a member of group {name}."
    for answer in (stranger.beat(member_epoch=3), stranger.leave()):
        assert (answer.error_code, answer.error_message) == (E.UNKNOWN_MEMBER_ID, text)


def test_a_steady_member_is_not_told_again(share_member: New, topic_id: bytes, name: str) -> None:
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    assert member.beat().assignment is None
    full = member.beat(subscribed_topic_names=[name])
    assert full.member_epoch == 3
    assert [each.topic_id for each in full.assignment.topic_partitions] == [topic_id]


def test_epochs_fence(share_member: New, topic_id: bytes) -> None:
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    ahead = member.beat(member_epoch=4)
    assert (ahead.error_code, ahead.error_message) == (
        E.FENCED_MEMBER_EPOCH,
        "The share group member has a greater member epoch (4) than the one known by the group "
        "coordinator (3). The member must abandon all its partitions and rejoin.",
    )
    assert member.beat(member_epoch=2).error_code == E.NONE  # that answer may have been lost
    behind = member.beat(member_epoch=1)
    assert (behind.error_code, behind.error_message) == (
        E.FENCED_MEMBER_EPOCH,
        "The share group member has a smaller member epoch (1) than the one known by the group coordinator "
        "(3), and it does not match the previous member epoch (2). The member must abandon all its "
        "partitions and rejoin.",
    )
    again = member.join()
    assert (again.error_code, again.member_epoch) == (E.NONE, 3)
    assert sum(len(each.partitions) for each in again.assignment.topic_partitions) == 4


def test_two_members_share_what_is_there(
    share_member: New, wire: WireClient, name: str, topic_id: bytes
) -> None:
    first, second = share_member("a"), share_member("b")
    first.join()
    first.settle({topic_id: ALL})
    second.join()

    def dealt() -> bool:
        for each in (first, second):
            assert each.beat().error_code == 0
        return first.epoch == second.epoch == 4

    wait_until(dealt, "a new assignment")
    parts = [sorted(each.has.get(topic_id, [])) for each in (first, second)]
    assert sorted([*parts[0], *parts[1]]) == ALL
    assert [len(each) for each in parts] == [2, 2]
    group = describe(wire, name)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 4, 4)
    assert group.assignor_name == "simple"
    shown = {each.member_id: each for each in group.members}
    assert {key: assigned(each) for key, each in shown.items()} == {
        "a": {name: parts[0]},
        "b": {name: parts[1]},
    }
    one = shown["a"]
    assert (one.member_epoch, one.client_id, one.client_host) == (4, "wire", "/127.0.0.1")
    assert (one.rack_id, one.subscribed_topic_names) == (None, [name])
    assert second.leave().member_epoch == -1
    first.settle({topic_id: ALL})
    assert first.epoch == 5


def test_more_members_than_partitions(share_member: New, topic_id: bytes) -> None:
    members = [share_member(each) for each in "abcdef"]
    for each in members:
        each.join()

    def dealt() -> bool:
        for each in members:
            each.beat()
        return all(each.has.get(topic_id) for each in members) and len({e.epoch for e in members}) == 1

    wait_until(dealt, "partitions for everybody")
    held = [index for each in members for index in each.has[topic_id]]
    assert sorted(set(held)) == ALL
    assert max(held.count(index) for index in ALL) <= 2


def test_a_group_without_members_is_empty(share_member: New, wire: WireClient, name: str) -> None:
    member = share_member()
    member.join(rack_id="r")
    [shown] = describe(wire, name).members
    assert shown.rack_id == "r"
    assert member.leave().error_code == 0
    group = describe(wire, name)
    assert (group.error_code, group.group_state, group.group_epoch) == (0, "Empty", 3)
    assert (group.assignment_epoch, group.members) == (3, [])


def test_a_topic_that_comes_later(share_member: New, wire: WireClient, name: str) -> None:
    member = share_member("a", [name + "-later"])
    member.join()
    member.beat()
    assert member.has == {}
    later = wire.create_topic(name + "-later", 2)
    member.settle({later: [0, 1]})


def test_partitions_that_come_later(share_member: New, wire: WireClient, name: str, topic_id: bytes) -> None:
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    topics = [m.CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=6, assignments=None)]
    wire.send(m.CreatePartitionsRequest(topics=topics, timeout_ms=30_000), 3)
    member.settle({topic_id: [0, 1, 2, 3, 4, 5]})


def test_a_deleted_topic_goes_from_the_assignment(
    share_member: New, wire: WireClient, name: str, topic_id: bytes
) -> None:
    other = create_for_groups(wire, name + "-other")
    member = share_member("a", [name, name + "-other"])
    member.join()
    member.settle({topic_id: ALL, other: [0]})
    states = [m.DeleteTopicsRequest.DeleteTopicState(name=name + "-other", topic_id=bytes(16))]
    wire.send(m.DeleteTopicsRequest(topics=states, timeout_ms=30_000), 6)
    member.settle({topic_id: ALL})


def test_a_subscription_changes(share_member: New, wire: WireClient, name: str, topic_id: bytes) -> None:
    other = create_for_groups(wire, name + "-other")
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    answer = member.beat(subscribed_topic_names=[name + "-other"])
    assert answer.assignment.topic_partitions == []
    member.settle({other: [0]})
    assert describe(wire, name).members[0].subscribed_topic_names == [name + "-other"]


def test_one_id_has_one_type(
    share_member: New, member: Callable[..., ConsumerMember], new_member: Callable[..., Member], name: str
) -> None:
    share_member().join()
    answer = member("b").join()
    assert (answer.error_code, answer.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        f"Group {name} is not a consumer group.",
    )
    assert new_member().join().error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_of_another_type(
    share_member: New, member: Callable[..., ConsumerMember], wire: WireClient, name: str
) -> None:
    member("b").join()
    text = f"Group {name} is not a share group."
    for answer in (share_member().join(), share_member().leave(), describe(wire, name)):
        assert (answer.error_code, answer.error_message) == (E.GROUP_ID_NOT_FOUND, text)


def test_a_group_of_offsets_alone_is_another_type(share_member: New, wire: WireClient, name: str) -> None:
    request = m.OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = request.OffsetCommitRequestTopic(name=name, partitions=[partition])
    answer = wire.send(request(group_id=name, generation_id_or_member_epoch=-1, topics=[topic]), 9)
    assert answer.topics[0].partitions[0].error_code == 0
    assert share_member().join().error_code == E.GROUP_ID_NOT_FOUND


def test_nothing_is_committed_to_a_share_group(share_member: New, wire: WireClient, name: str) -> None:
    share_member().join()
    request = m.OffsetCommitRequest
    partition = request.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = request.OffsetCommitRequestTopic(name=name, partitions=[partition])
    answer = wire.send(request(group_id=name, generation_id_or_member_epoch=-1, topics=[topic]), 9)
    assert answer.topics[0].partitions[0].error_code == E.GROUP_ID_NOT_FOUND
    fetch = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None)
    [found] = wire.send(m.OffsetFetchRequest(groups=[fetch]), 9).groups
    assert (found.error_code, found.topics) == (0, [])
    delete = m.OffsetDeleteRequest
    partitions = [delete.OffsetDeleteRequestPartition(partition_index=0)]
    answer = wire.send(
        delete(group_id=name, topics=[delete.OffsetDeleteRequestTopic(name=name, partitions=partitions)]), 0
    )
    assert answer.error_code == E.GROUP_ID_NOT_FOUND


def test_share_groups_are_listed(share_member: New, wire: WireClient, name: str) -> None:
    member = share_member()
    member.join()

    def listed(**filters: Any) -> list[tuple[str, str, str, str]]:
        found = wire.send(m.ListGroupsRequest(**filters), 5).groups
        return [
            (each.group_id, each.protocol_type, each.group_state, each.group_type)
            for each in found
            if each.group_id == name
        ]

    shown = [(name, "share", "Stable", "share")]
    assert listed() == listed(types_filter=["Share"]) == listed(states_filter=["stable"]) == shown
    assert listed(types_filter=["consumer"]) == listed(states_filter=["Empty"]) == []
    member.leave()
    assert listed() == [(name, "share", "Empty", "share")]


def test_a_share_group_is_no_classic_group(share_member: New, wire: WireClient, name: str) -> None:
    share_member().join()
    [group] = wire.send(m.DescribeGroupsRequest(groups=[name]), 6).groups
    assert (group.error_code, group.group_state) == (E.GROUP_ID_NOT_FOUND, "Dead")
    assert group.error_message == f"Group {name} is not a classic group."
    [consumer] = wire.send(m.ConsumerGroupDescribeRequest(group_ids=[name]), 1).groups
    assert (consumer.error_code, consumer.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        f"Group {name} is not a consumer group.",
    )


def test_describing_what_is_not_there(share_member: New, wire: WireClient, name: str) -> None:
    groups = wire.send(m.ShareGroupDescribeRequest(group_ids=[name, ""]), 1).groups
    answers = {each.group_id: (each.error_code, each.error_message, each.group_state) for each in groups}
    assert answers == {
        name: (E.GROUP_ID_NOT_FOUND, f"Group {name} not found.", ""),
        "": (E.INVALID_GROUP_ID, None, ""),
    }


def test_authorized_operations(share_member: New, wire: WireClient, name: str) -> None:
    share_member().join()
    assert describe(wire, name).authorized_operations == -(2**31)
    request = m.ShareGroupDescribeRequest(group_ids=[name], include_authorized_operations=True)
    [group] = wire.send(request, 1).groups
    assert group.authorized_operations > 0

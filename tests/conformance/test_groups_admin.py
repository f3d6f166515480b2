"""Describing, listing and deleting groups and their offsets (coordinators.md 3.7, 7.39, 7.40, 7.48)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.group_member import Member, form, reach, settle, subscription
from tests.support.wire_client import WireClient

NewMember = Callable[..., Member]
GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
NOT_ASKED = -(2**31)


def listed(wire: WireClient, version: int, **filters: list[str]) -> dict[str, Any]:
    answer = wire.send(m.ListGroupsRequest(**filters), version)
    assert answer.error_code == ErrorCode.NONE
    return {group.group_id: group for group in answer.groups}


def delete(wire: WireClient, *groups: str, version: int = 2) -> list[tuple[str, int]]:
    answer = wire.send(m.DeleteGroupsRequest(groups_names=list(groups)), version)
    return sorted((each.group_id, each.error_code) for each in answer.results)


def delete_offsets(
    wire: WireClient, group: str, *topics: str, partition: int = 0
) -> tuple[int, dict[str, int]]:
    request = m.OffsetDeleteRequest
    wanted = [
        request.OffsetDeleteRequestTopic(
            name=name, partitions=[request.OffsetDeleteRequestPartition(partition_index=partition)]
        )
        for name in topics
    ]
    answer = wire.send(request(group_id=group, topics=wanted), 0)
    return answer.error_code, {each.name: each.partitions[0].error_code for each in answer.topics}


def fetched(wire: WireClient, group: str, topic: str) -> int:
    request = m.OffsetFetchRequest
    wanted = [request.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    answer = wire.send(request(group_id=group, topics=wanted), 7)
    return int(answer.topics[0].partitions[0].committed_offset)


@pytest.mark.parametrize("version", range(7))
def test_an_absent_group(wire: WireClient, new_member: NewMember, name: str, version: int) -> None:
    found = new_member().describe(version)
    assert (found.group_state, found.protocol_type, found.protocol_data, found.members) == (
        "Dead",
        "",
        "",
        [],
    )
    assert found.group_id == name
    if version >= 6:
        assert found.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert found.error_message == f"Group {name} not found."
    else:
        assert found.error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(7))
def test_a_stable_group(new_member: NewMember, name: str, version: int) -> None:
    member = new_member(instance_id="i", client_id="me")
    settle(member)
    found = member.describe(version)
    assert (found.error_code, found.error_message, found.group_id) == (0, None, name)
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
    assert found.authorized_operations == NOT_ASKED
    [shown] = found.members
    assert (shown.member_id, shown.client_id, shown.client_host) == (member.id, "me", "/127.0.0.1")
    assert (shown.member_metadata, shown.member_assignment) == (b"meta", member.id.encode())
    assert shown.group_instance_id == ("i" if version >= 4 else None)


def test_during_a_rebalance_neither_metadata_nor_protocol_is_shown(new_member: NewMember) -> None:
    one, other = new_member(), new_member()
    leader = form(one, other)
    for state in ("CompletingRebalance", "PreparingRebalance"):
        found = one.describe()
        assert (found.group_state, found.protocol_type, found.protocol_data) == (state, "consumer", "")
        assert {member.member_id for member in found.members} == {one.id, other.id}
        assert {(member.member_metadata, member.member_assignment) for member in found.members} == {
            (b"", b"")
        }
        if state == "CompletingRebalance":
            again = new_member()
            again.protocols, again.id = [("range", b"changed")], leader.id
            again.post_join()
            reach(one, "PreparingRebalance")


@pytest.mark.parametrize("version", range(3, 7))
def test_authorized_operations_of_groups_that_are_there(new_member: NewMember, version: int) -> None:
    member = new_member()
    absent = f"{member.group}-absent"
    settle(member)
    request = m.DescribeGroupsRequest(groups=[member.group, absent], include_authorized_operations=True)
    there, not_there = member.wire.send(request, version).groups
    assert there.authorized_operations == GROUP_OPERATIONS
    assert not_there.authorized_operations == (NOT_ASKED if version >= 6 else GROUP_OPERATIONS)


def test_a_group_without_members_that_has_offsets(new_member: NewMember, topic: str) -> None:
    member = new_member()
    assert member.commit(topic, 1) == ErrorCode.NONE
    found = member.describe(6)
    assert (found.error_code, found.group_state, found.protocol_type) == (0, "Empty", "")
    assert listed(member.wire, 5)[member.group].group_state == "Empty"


def test_one_group_twice_and_no_name(new_member: NewMember) -> None:
    member = new_member()
    request = m.DescribeGroupsRequest(groups=[member.group, member.group, ""])
    found = member.wire.send(request, 5).groups
    assert sorted(group.group_id for group in found) == sorted([member.group, member.group, ""])
    assert {group.error_code for group in found} == {0}


@pytest.mark.parametrize("version", range(6))
def test_every_version_lists(new_member: NewMember, version: int) -> None:
    member = new_member(protocol_type="connect")
    settle(member)
    group = listed(member.wire, version)[member.group]
    assert group.protocol_type == "connect"
    assert group.group_state == ("Stable" if version >= 4 else "")
    assert group.group_type == ("classic" if version >= 5 else "")


@pytest.mark.parametrize(
    ("states", "types", "is_listed"),
    [
        (["Stable"], [], True),
        (["stable"], [], True),
        (["Empty", "STABLE"], [], True),
        (["Empty"], [], False),
        (["Nonsense"], [], False),
        (["Nonsense", "Stable"], [], True),
        ([], ["classic"], True),
        ([], ["Classic"], True),
        ([], ["consumer"], False),
        ([], ["consumer", "classic"], True),
        ([], ["nonsense"], False),
        (["Stable"], ["classic"], True),
        (["Empty"], ["classic"], False),
        (["Stable"], ["share"], False),
        ([""], [], False),
        ([], [""], False),
    ],
)
def test_filters(new_member: NewMember, states: list[str], types: list[str], is_listed: bool) -> None:
    member = new_member()
    settle(member)
    assert (member.group in listed(member.wire, 5, states_filter=states, types_filter=types)) == is_listed
    if not types:
        assert (member.group in listed(member.wire, 4, states_filter=states)) == is_listed


@pytest.mark.parametrize("version", range(3))
def test_only_groups_without_members_are_deleted(new_member: NewMember, topic: str, version: int) -> None:
    member = new_member()
    settle(member)
    assert member.commit(topic, 5) == ErrorCode.NONE
    assert delete(member.wire, member.group, version=version) == [(member.group, ErrorCode.NON_EMPTY_GROUP)]
    assert member.heartbeat() == ErrorCode.NONE
    member.leave()
    assert fetched(member.wire, member.group, topic) == 5
    assert delete(member.wire, member.group, version=version) == [(member.group, ErrorCode.NONE)]
    assert fetched(member.wire, member.group, topic) == -1
    assert member.describe(6).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete(member.wire, member.group) == [(member.group, ErrorCode.GROUP_ID_NOT_FOUND)]
    assert member.group not in listed(member.wire, 5)


def test_version_3_has_no_more_to_say(new_member: NewMember) -> None:
    member = new_member()
    settle(member)
    absent = f"{member.group}-absent"
    answer = member.wire.send(m.DeleteGroupsRequest(groups_names=[member.group, absent]), 3)
    found = {each.group_id: (each.error_code, each.error_message) for each in answer.results}
    assert found == {
        member.group: (ErrorCode.NON_EMPTY_GROUP, None),
        absent: (ErrorCode.GROUP_ID_NOT_FOUND, None),
    }


def test_many_are_deleted_at_once(new_member: NewMember, topic: str) -> None:
    members = [new_member() for _ in range(2)]
    for number, member in enumerate(members):
        member.group += f"-{number}"
        assert member.commit(topic, 1) == ErrorCode.NONE
    one, other = (member.group for member in members)
    delete(members[0].wire, "")  # other tests commit to the group without a name
    assert delete(members[0].wire, one, other, "") == [
        ("", ErrorCode.GROUP_ID_NOT_FOUND),
        (one, ErrorCode.NONE),
        (other, ErrorCode.NONE),
    ]
    assert delete(members[0].wire) == []


def test_one_group_is_deleted_twice(new_member: NewMember, topic: str) -> None:
    member = new_member()
    assert member.commit(topic, 1) == ErrorCode.NONE
    found = delete(member.wire, member.group, member.group)
    assert found == [(member.group, ErrorCode.NONE)]


def test_a_deleted_group_begins_anew(new_member: NewMember) -> None:
    member = new_member()
    settle(member)
    member.leave()
    delete(member.wire, member.group)
    member.id = ""
    assert member.enter().generation_id == 1


def test_offsets_of_an_empty_group_are_deleted(new_member: NewMember, topic: str) -> None:
    member = new_member()
    assert member.commit(topic, 5) == ErrorCode.NONE
    assert delete_offsets(member.wire, member.group, topic, "unknown") == (
        0,
        {topic: ErrorCode.NONE, "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    )
    assert fetched(member.wire, member.group, topic) == -1
    assert member.describe(6).error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NONE)


def test_offsets_that_are_not_there_are_deleted(new_member: NewMember, topic: str) -> None:
    member = new_member()
    settle(member)
    member.leave()
    assert delete_offsets(member.wire, member.group, topic) == (0, {topic: ErrorCode.NONE})
    code, found = delete_offsets(member.wire, member.group, topic, partition=7)
    assert (code, found) == (0, {topic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


def test_topics_that_members_subscribe_to_keep_their_offsets(
    wire: WireClient, new_member: NewMember, name: str, topic: str
) -> None:
    other = f"{name}-other"
    wire.create_topic(other)
    member = new_member(protocols=[("range", subscription(topic))])
    settle(member)
    for each in (topic, other):
        assert member.commit(each, 5) == ErrorCode.NONE
    assert delete_offsets(wire, member.group, topic, other) == (
        0,
        {topic: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, other: ErrorCode.NONE},
    )
    assert [fetched(wire, member.group, each) for each in (topic, other)] == [5, -1]


def test_a_subscription_that_does_not_parse_may_mean_any_topic(new_member: NewMember, topic: str) -> None:
    member = new_member(protocols=[("range", b"\x00\x00\x7f")])
    settle(member)
    assert delete_offsets(member.wire, member.group, topic) == (
        0,
        {topic: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC},
    )


def test_other_protocols_keep_theirs_while_they_have_members(new_member: NewMember, topic: str) -> None:
    member = new_member(protocol_type="connect")
    settle(member)
    code, _ = delete_offsets(member.wire, member.group, topic)
    assert code == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert delete_offsets(member.wire, member.group, topic) == (0, {topic: ErrorCode.NONE})


def test_offsets_of_an_absent_group(new_member: NewMember, topic: str) -> None:
    member = new_member()
    assert delete_offsets(member.wire, member.group, topic) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
    assert delete_offsets(member.wire, member.group, "unknown") == (ErrorCode.GROUP_ID_NOT_FOUND, {})
    assert delete_offsets(member.wire, member.group) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
    assert delete_offsets(member.wire, "", topic) == (ErrorCode.INVALID_GROUP_ID, {})

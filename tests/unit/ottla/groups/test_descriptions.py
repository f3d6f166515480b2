"""Descriptions of groups: the new protocol's first, then the classic ones."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client import ClientError, KafkaClient
from ottla.groups.admin import GroupAdmin
from ottla.groups.descriptions import (
    GroupDescription,
    MemberDescription,
    NotAConsumerGroup,
    assigned_places,
    describe_consumer_groups,
)
from ottla.groups.member import assignment_blob
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.unit.ottla.groups.scripted_group import ScriptedGroup

Modern, Classic = m.ConsumerGroupDescribeResponse, m.DescribeGroupsResponse


def modern(request: m.ConsumerGroupDescribeRequest) -> m.ConsumerGroupDescribeResponse:
    return Modern(
        groups=[MODERN.get(group_id) or none_of_that_kind(group_id) for group_id in request.group_ids]
    )


def none_of_that_kind(group_id: str) -> Any:
    return Modern.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND)


def classic(request: m.DescribeGroupsRequest) -> m.DescribeGroupsResponse:
    return Classic(groups=[CLASSIC[group_id] for group_id in request.groups])


def places(*partitions: int) -> Any:
    topics = [Modern.TopicPartitions(topic_name="t", partitions=list(partitions))] if partitions else []
    return Modern.Assignment(topic_partitions=topics)


MODERN = {
    "new": Modern.DescribedGroup(
        group_id="new",
        group_state="Reconciling",
        group_epoch=9,
        assignment_epoch=8,
        assignor_name="uniform",
        members=[
            Modern.Member(
                member_id="m",
                client_id="c",
                client_host="/h",
                member_epoch=7,
                assignment=places(1),
                target_assignment=places(1, 2),
                member_type=1,
            ),
            Modern.Member(member_id="n", instance_id="i", member_type=0),
            Modern.Member(member_id="o"),
        ],
    ),
    "denied": Modern.DescribedGroup(
        group_id="denied", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, error_message="No."
    ),
}
CLASSIC = {
    "old": Classic.DescribedGroup(
        group_id="old",
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            Classic.DescribedGroupMember(
                member_id="m",
                group_instance_id="i",
                client_id="c",
                client_host="/h",
                member_assignment=assignment_blob([("t", 0), ("t", 1)]),
            )
        ],
    ),
    "connect": Classic.DescribedGroup(group_id="connect", group_state="Stable", protocol_type="connect"),
    "gone": Classic.DescribedGroup(
        group_id="gone", error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message="Group gone not found."
    ),
}
ANSWERS = {m.ConsumerGroupDescribeRequest: modern, m.DescribeGroupsRequest: classic}
OLD = GroupDescription(
    "old",
    (1, "127.0.0.1", 0),
    "Stable",
    "range",
    [MemberDescription("m", "i", "c", "/h", [("t", 0), ("t", 1)])],
)


def test_groups_of_both_kinds_are_described_alike() -> None:
    with ScriptedGroup(dict(ANSWERS)) as group, KafkaClient(group.address) as client:
        OLD.coordinator = (1, "127.0.0.1", group.broker.port)
        found = describe_consumer_groups(GroupAdmin(client, 5), ["old", "new"])
        assert list(found) == ["old", "new"]
        assert found["old"] == OLD
        described = found["new"]
        assert isinstance(described, GroupDescription)
        assert (described.epoch, described.target_epoch, described.assignor) == (9, 8, "uniform")
        first, second, third = described.members
        assert first == MemberDescription(
            "m", None, "c", "/h", [("t", 1)], [("t", 1), ("t", 2)], 7, upgraded=True
        )
        assert (second.instance_id, second.upgraded, third.upgraded) == ("i", False, None)
        assert [each.groups for each in group.asked(m.DescribeGroupsRequest)] == [["old"]]


def test_a_broker_without_the_new_api_is_asked_in_the_old_way() -> None:
    answers = {m.DescribeGroupsRequest: classic}
    with ScriptedGroup(answers) as group:
        del group.broker.versions[ApiKey.CONSUMER_GROUP_DESCRIBE]
        with KafkaClient(group.address) as client:
            OLD.coordinator = (1, "127.0.0.1", group.broker.port)
            assert describe_consumer_groups(GroupAdmin(client, 5), ["old"]) == {"old": OLD}


def test_what_can_not_be_described_stands_with_its_error() -> None:
    with ScriptedGroup(dict(ANSWERS)) as group, KafkaClient(group.address) as client:
        found = describe_consumer_groups(GroupAdmin(client, 5), ["denied", "connect", "gone"])
    assert str(found["denied"]) == "No."
    assert isinstance(found["connect"], NotAConsumerGroup)
    assert str(found["connect"]) == "GroupId connect is not a consumer group (connect)."
    gone = found["gone"]
    assert isinstance(gone, ClientError)
    assert (gone.error, str(gone)) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group gone not found.")


def test_an_assignment_is_empty_during_a_rebalance_and_may_be_broken() -> None:
    assert assigned_places(b"") == []
    with pytest.raises(ClientError, match="can't be read"):
        assigned_places(b"\x00")

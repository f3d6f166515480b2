"""What others may know of a classic group: DescribeGroups, ListGroups, DeleteGroups, and subscribed topics.

Metadata, assignments and the protocol's name are shown of Stable groups only. Subscriptions are read for
protocol type "consumer" alone, and only their topics; a member whose bytes do not parse makes the whole
group's subscription unknown, which never fails the group.
"""

from __future__ import annotations

from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.states import GroupState
from protocol import messages as m
from protocol.errors import ErrorCode, MalformedMessage

CONSUMER = "consumer"
GROUP_TYPE = "classic"
NOT_FOUND_FROM = 6
"""DescribeGroups version from which an absent group is an error (KIP-1043)."""
_VERSION_BYTES = 2
_SUBSCRIPTION_VERSION_READ = 0


def described(group: ClassicGroup) -> m.DescribeGroupsResponse.DescribedGroup:
    """A group as DescribeGroups shows it."""
    stable = group.state is GroupState.STABLE
    return m.DescribeGroupsResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            m.DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment if stable else b"",
            )
            for member in group.members.values()
        ],
    )


def described_absent(group_id: str, version: int) -> m.DescribeGroupsResponse.DescribedGroup:
    """A group that does not exist is Dead; from version 6 that is an error, too."""
    if version < NOT_FOUND_FROM:
        return m.DescribeGroupsResponse.DescribedGroup(
            group_id=group_id, group_state=GroupState.DEAD.value, protocol_type="", protocol_data=""
        )
    return m.DescribeGroupsResponse.DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} not found.",
        group_id=group_id,
        group_state=GroupState.DEAD.value,
        protocol_type="",
        protocol_data="",
    )


def listed(group: ClassicGroup) -> m.ListGroupsResponse.ListedGroup:
    """A group as ListGroups shows it."""
    return m.ListGroupsResponse.ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=GROUP_TYPE,
    )


def delete_error(group: ClassicGroup) -> ErrorCode:
    """Whether DeleteGroups may delete it now: NONE, NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND."""
    if group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP


def offset_delete_error(group: ClassicGroup) -> ErrorCode:
    """Whether OffsetDelete may look at single topics; `read_topics` decides about those."""
    if group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The topics that any member subscribes to; None when that cannot be known."""
    if group.protocol_type != CONSUMER:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        named = topics_of_subscription(member.metadata(group.protocol_name))
        if named is None:
            return None
        topics.update(named)
    return frozenset(topics)


def read_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The topics that members of a consumer group may read; None: any, as subscriptions are unknown."""
    if group.state is GroupState.EMPTY or group.protocol_type != CONSUMER:
        return frozenset()
    return subscribed_topics(group)


def topics_of_subscription(metadata: bytes) -> list[str] | None:
    """Topics of a consumer protocol subscription, of any version; None when the bytes are something else."""
    if len(metadata) < _VERSION_BYTES or int.from_bytes(metadata[:_VERSION_BYTES], "big", signed=True) < 0:
        return None
    try:
        subscription, _ = m.ConsumerProtocolSubscription.decode(
            _SUBSCRIPTION_VERSION_READ, metadata, _VERSION_BYTES
        )
    except MalformedMessage:
        return None
    return subscription.topics

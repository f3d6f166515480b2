"""What a coordinator tells of a group and its members, classic or of the new protocol alike.

As Kafka's admin client does it: ConsumerGroupDescribe first (KIP-848), and for groups that are none of that
kind, or brokers without that API, DescribeGroups. A classic member's assignment is the blob of the consumer
protocol; a group of another protocol type is no consumer group and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.client import ClientError
from ottla.groups.admin import GroupAdmin, Place
from ottla.groups.coordinators import WAITS
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.consumer_blobs import decode_assignment
from protocol.errors import ErrorCode, MalformedMessage

CONSUMER_PROTOCOL_TYPES = ("consumer", "")
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
DEAD = "Dead"


@dataclass(slots=True)
class MemberDescription:
    """A member; what only the new protocol has is None in a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: list[Place]
    target: list[Place] | None = None
    epoch: int | None = None
    upgraded: bool | None = None  # whether it speaks the new protocol; None where the broker does not tell


@dataclass(slots=True)
class GroupDescription:
    """A group and the broker that coordinates it."""

    group_id: str
    coordinator: tuple[int, str, int]  # node id, host, port
    state: str
    assignor: str
    members: list[MemberDescription] = field(default_factory=list)
    epoch: int | None = None
    target_epoch: int | None = None


class NotAConsumerGroup(ClientError):
    """The group's protocol type is another one."""


Described = dict[str, "GroupDescription | ClientError"]


def describe_consumer_groups(admin: GroupAdmin, group_ids: Sequence[str]) -> Described:
    """Each group's description, or the error that stands for it."""
    found: Described = {}
    classic: list[str] = []

    def modern() -> None:
        left = [each for each in group_ids if each not in found and each not in classic]
        for node, ids in admin.coordinators.by_node(left).items():
            if not admin.client.connection(node).supports(ApiKey.CONSUMER_GROUP_DESCRIBE):
                classic.extend(ids)
                continue
            request = m.ConsumerGroupDescribeRequest(group_ids=ids)
            for group in admin.client.call(request, node).groups:
                _take(admin, found, classic, group, node)

    def old() -> None:
        for node, ids in admin.coordinators.by_node(each for each in classic if each not in found).items():
            for group in admin.client.call(m.DescribeGroupsRequest(groups=ids), node).groups:
                _take_classic(admin, found, group, node)

    admin.coordinators.patiently(modern)
    admin.coordinators.patiently(old)
    return {group_id: found[group_id] for group_id in group_ids if group_id in found}


def _take(
    admin: GroupAdmin,
    found: Described,
    classic: list[str],
    group: m.ConsumerGroupDescribeResponse.DescribedGroup,
    node: int,
) -> None:
    error = ErrorCode(group.error_code)
    if error in WAITS:
        admin.coordinators.check(group.group_id, error)
    if error in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        classic.append(group.group_id)
        return
    if error != ErrorCode.NONE:
        found[group.group_id] = ClientError(group.error_message or error.message, error)
        return
    found[group.group_id] = GroupDescription(
        group.group_id,
        (node, *admin.client.nodes[node]),
        group.group_state,
        group.assignor_name,
        [
            MemberDescription(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                _places(member.assignment),
                _places(member.target_assignment),
                member.member_epoch,
                {CLASSIC_MEMBER: False, CONSUMER_MEMBER: True}.get(member.member_type),
            )
            for member in group.members
        ],
        group.group_epoch,
        group.assignment_epoch,
    )


def _places(assignment: m.ConsumerGroupDescribeResponse.Assignment) -> list[Place]:
    return [(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions]


def _take_classic(
    admin: GroupAdmin, found: Described, group: m.DescribeGroupsResponse.DescribedGroup, node: int
) -> None:
    error = ErrorCode(group.error_code)
    if error in WAITS:
        admin.coordinators.check(group.group_id, error)
    if error != ErrorCode.NONE:
        found[group.group_id] = ClientError(group.error_message or error.message, error)
        return
    if group.protocol_type not in CONSUMER_PROTOCOL_TYPES:
        found[group.group_id] = NotAConsumerGroup(
            f"GroupId {group.group_id} is not a consumer group ({group.protocol_type})."
        )
        return
    found[group.group_id] = GroupDescription(
        group.group_id,
        (node, *admin.client.nodes[node]),
        group.group_state,
        group.protocol_data,
        [
            MemberDescription(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                assigned_places(member.member_assignment),
            )
            for member in group.members
        ],
    )


def assigned_places(blob: bytes) -> list[Place]:
    """The partitions in a classic member's assignment; none while a rebalance goes on."""
    if not blob:
        return []
    try:
        assignment = decode_assignment(blob)
    except MalformedMessage as error:
        raise ClientError(f"a member's assignment can't be read: {error}") from error
    return [(topic.topic, index) for topic in assignment.assigned_partitions for index in topic.partitions]

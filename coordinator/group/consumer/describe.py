"""What others may know of a consumer group: ConsumerGroupDescribe, ListGroups, all by committed records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator.group.consumer.assign import preferred_assignor
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.member import NEW, Member
from coordinator.group.modern.assignment import NOTHING
from protocol import messages as m
from protocol.errors import ErrorCode

GROUP_TYPE: Final = "consumer"
PROTOCOL_TYPE: Final = "consumer"
CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def state_of(env: Environment, group_id: str) -> str:
    """Empty, Assigning, Reconciling or Stable."""
    tables = env.tables
    members = tables.members.committed_row(group_id)
    if not members:
        return "Empty"
    target = tables.committed_target_epoch(group_id).epoch
    if tables.committed_epoch(group_id).epoch > target:
        return "Assigning"
    current = tables.current.committed_row(group_id)
    if all(current.get(member_id, NEW).is_reconciled_to(target) for member_id in members):
        return "Stable"
    return "Reconciling"


def listed(env: Environment, group_id: str) -> m.ListGroupsResponse.ListedGroup:
    """A group as ListGroups shows it."""
    return m.ListGroupsResponse.ListedGroup(
        group_id=group_id,
        protocol_type=PROTOCOL_TYPE,
        group_state=state_of(env, group_id),
        group_type=GROUP_TYPE,
    )


def described_refused(
    group_id: str, error: ErrorCode, text: str
) -> m.ConsumerGroupDescribeResponse.DescribedGroup:
    """There is nothing to show: no such group, another type, or the protocol is off."""
    return m.ConsumerGroupDescribeResponse.DescribedGroup(
        error_code=error,
        error_message=text,
        group_id=group_id,
        group_state="",
        assignor_name="",
    )


def described(env: Environment, group_id: str) -> m.ConsumerGroupDescribeResponse.DescribedGroup:
    """A group as ConsumerGroupDescribe shows it."""
    tables = env.tables
    members = tables.members.committed_row(group_id)
    return m.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=state_of(env, group_id),
        group_epoch=tables.committed_epoch(group_id).epoch,
        assignment_epoch=tables.committed_target_epoch(group_id).epoch,
        assignor_name=preferred_assignor(env, members.values()),
        members=[_member(env, group_id, member) for member in members.values()],
    )


def _member(env: Environment, group_id: str, member: Member) -> m.ConsumerGroupDescribeResponse.Member:
    current = env.tables.current.committed(group_id, member.member_id) or NEW
    target = env.tables.targets.committed(group_id, member.member_id) or NOTHING
    return m.ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack,
        member_epoch=current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(env, current.assigned),
        target_assignment=_assignment(env, target),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(
    env: Environment, assignment: Mapping[bytes, Iterable[int]]
) -> m.ConsumerGroupDescribeResponse.Assignment:
    """Topics that have gone are left out, as their names are not known any more."""
    return m.ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=[
            m.ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic_id, topic_name=name, partitions=sorted(partitions)
            )
            for topic_id, partitions in sorted(assignment.items())
            if (name := env.topics.name_of(topic_id)) is not None
        ]
    )

"""Members of share groups and their current assignments: records 10 and 14 of __consumer_offsets.

A member is Stable at once, always: the protocol has no phase in which partitions are given up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from coordinator.group.modern.assignment import Assignment, from_wire, to_wire
from coordinator.group.modern.records import SHARE, read_value, record
from coordinator.group.modern.tables import Codec
from coordinator.group.room import names_size
from coordinator.result import CoordinatorRecord
from protocol import messages as m

STABLE: Final = 0
JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
NO_PREVIOUS_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class ShareMember:
    """Who a member is and what it wants to read; `client_host` is "/" and its address."""

    member_id: str
    rack_id: str | None
    client_id: str
    client_host: str
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class ShareCurrent:
    """What a member was last told. With `previous_epoch` it may come again, as that answer may be lost."""

    epoch: int = JOIN_EPOCH
    previous_epoch: int = NO_PREVIOUS_EPOCH
    assigned: Assignment = field(default_factory=dict)


NEW: Final = ShareCurrent()


def member_record(group_id: str, member: ShareMember) -> CoordinatorRecord:
    """Type 10."""
    value = m.ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
    )
    return record(SHARE.member, group_id, member.member_id, value)


def current_record(group_id: str, member_id: str, current: ShareCurrent) -> CoordinatorRecord:
    """Type 14."""
    cls = m.ShareGroupCurrentMemberAssignmentValue
    value = cls(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=STABLE,
        assigned_partitions=to_wire(current.assigned, cls.TopicPartitions),
    )
    return record(SHARE.current, group_id, member_id, value)


def read_member(member_id: str, value: bytes) -> ShareMember | None:
    """Type 10; None for a version that is not known. Raises MalformedMessage."""
    read = read_value(m.ShareGroupMemberMetadataValue, value)
    if read is None:
        return None
    topics = frozenset(read.subscribed_topic_names)
    return ShareMember(member_id, read.rack_id, read.client_id, read.client_host, topics)


def read_current(value: bytes) -> ShareCurrent | None:
    """Type 14; None for a version that is not known. Raises MalformedMessage."""
    read = read_value(m.ShareGroupCurrentMemberAssignmentValue, value)
    if read is None:
        return None
    return ShareCurrent(read.member_epoch, read.previous_member_epoch, from_wire(read.assigned_partitions))


CODEC: Final = Codec(SHARE, read_member, read_current, lambda member: names_size(member.topics))

"""Members of consumer groups, where they stand, and both as records (types 5 and 8).

Values are never changed in place. Partitions a member has carry the epoch at which it got them (KIP-1251),
so that a commit of an older epoch is good for those it had then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from coordinator.group.modern.records import CONSUMER, read_value, record
from coordinator.group.room import names_size, protocols_size
from coordinator.result import CoordinatorRecord
from protocol import messages as m

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2

Epochs: TypeAlias = dict[bytes, dict[int, int]]
"""Topic id to partition to the epoch it was given at. No topic is empty."""


class MemberState(IntEnum):
    """How far a member is on the way to its target; the numbers are those of record type 8."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicPart:
    """What only members of the classic protocol have; `protocols` are (name, metadata)."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """What a member has said of itself. `topics` are sorted; an empty regex is none."""

    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicPart | None = None


@dataclass(frozen=True, slots=True)
class Current:
    """Where a member stands: its epoch, what it has, and what it has been asked to give up."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=dict)
    revoking: Epochs = field(default_factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether nothing is left to do for the target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


NEW = Current()


def member_size(member: Member) -> int:
    """How much memory what it has said takes, about."""
    size = names_size(member.topics) + len(member.regex)
    return size if member.classic is None else size + protocols_size(member.classic.protocols)


def member_record(group_id: str, member: Member) -> CoordinatorRecord:
    """Type 5."""
    classic = None
    if member.classic is not None:
        part = m.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
        classic = part(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                m.ConsumerGroupMemberMetadataValue.ClassicProtocol(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    value = m.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return record(CONSUMER.member, group_id, member.member_id, value)


def read_member(member_id: str, value: bytes) -> Member | None:
    """Type 5; None for a version that is not known. Raises MalformedMessage."""
    read: m.ConsumerGroupMemberMetadataValue | None = read_value(m.ConsumerGroupMemberMetadataValue, value)
    if read is None:
        return None
    classic = read.classic_member_metadata
    return Member(
        member_id,
        read.instance_id,
        read.rack_id,
        read.client_id,
        read.client_host,
        tuple(sorted(read.subscribed_topic_names)),
        read.subscribed_topic_regex or "",
        read.rebalance_timeout_ms,
        read.server_assignor,
        None
        if classic is None
        else ClassicPart(
            classic.session_timeout_ms,
            tuple((each.name, bytes(each.metadata)) for each in classic.supported_protocols),
        ),
    )


def current_record(group_id: str, member_id: str, current: Current) -> CoordinatorRecord:
    """Type 8."""
    value = m.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state.value,
        assigned_partitions=_to_wire(current.assigned),
        partitions_pending_revocation=_to_wire(current.revoking),
    )
    return record(CONSUMER.current, group_id, member_id, value)


def read_current(value: bytes) -> Current | None:
    """Type 8; None for a version that is not known. Raises MalformedMessage."""
    read: m.ConsumerGroupCurrentMemberAssignmentValue | None = read_value(
        m.ConsumerGroupCurrentMemberAssignmentValue, value
    )
    if read is None:
        return None
    try:
        state = MemberState(read.state)
    except ValueError:
        state = MemberState.UNKNOWN
    return Current(
        read.member_epoch,
        read.previous_member_epoch,
        state,
        _from_wire(read.assigned_partitions, read.member_epoch),
        _from_wire(read.partitions_pending_revocation, read.member_epoch),
    )


_Wire: TypeAlias = "list[m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]"


def _to_wire(epochs: Epochs) -> _Wire:
    found: _Wire = []
    for topic_id, partitions in sorted(epochs.items()):
        numbers = sorted(partitions)
        found.append(
            m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions(
                topic_id=topic_id,
                partitions=numbers,
                assignment_epochs=[partitions[number] for number in numbers],
            )
        )
    return found


def _from_wire(topics: _Wire, epoch: int) -> Epochs:
    """Records from before KIP-1251 have no epochs of partitions: the member's stands for them."""
    found: Epochs = {}
    for each in topics:
        if not each.partitions:
            continue
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [epoch] * len(each.partitions)
        found[each.topic_id] = dict(zip(each.partitions, epochs, strict=True))
    return found

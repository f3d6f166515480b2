"""Who may do what in a consumer group: heartbeats, commits and fetches of offsets. Raises Refused.

The checks of a heartbeat's fields need no group (`check_heartbeat`); the others look at live state.
"""

from __future__ import annotations

from collections.abc import Collection

from coordinator.group.consumer.errors import Refused, no_member
from coordinator.group.consumer.member import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    Current,
    Epochs,
    Member,
)
from coordinator.group.modern.assignment import Assignment
from protocol import messages as m
from protocol.errors import ErrorCode

CLIENT_MADE_ID_FROM = 1
COMMIT_FROM = 9


def check_heartbeat(
    request: m.ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]
) -> None:
    """What is wrong with a request whatever the group: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR."""
    if (
        version >= CLIENT_MADE_ID_FROM or request.member_epoch != JOIN_EPOCH
    ) and not request.member_id.strip():
        _invalid("MemberId can't be empty.")
    if not request.group_id.strip():
        _invalid("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        _invalid("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        _invalid("RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            _invalid("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )


def _invalid(text: str) -> None:
    raise Refused(ErrorCode.INVALID_REQUEST, text)


def check_epoch(current: Current, epoch: int, owned: Assignment | None) -> None:
    """FENCED_MEMBER_EPOCH, unless the epoch is the member's own, or the one before and the member has
    nothing that it was not given: then only an answer was lost. Joining again is always right.
    """
    if epoch in (JOIN_EPOCH, current.epoch):
        return
    if epoch > current.epoch:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by the "
            f"group coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )
    if epoch != current.previous_epoch or owned is None or not _is_subset(owned, current.assigned):
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known by the "
            f"group coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )


def _is_subset(owned: Assignment, assigned: Epochs) -> bool:
    return all(own <= assigned.get(topic_id, {}).keys() for topic_id, own in owned.items())


def check_instance(holder: Member | None, member_id: str, instance_id: str, group_id: str) -> Member:
    """The member of an instance id: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID where it has another id."""
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise Refused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{holder.member_id}.",
        )
    return holder


def check_commit(
    members: dict[str, Member],
    current: dict[str, Current],
    member_id: str,
    epoch: int,
    version: int,
    *,
    transactional: bool,
    group_id: str = "",
) -> bool:
    """Whether a commit may go ahead; true where each partition has to be looked at (`commit_epoch_error`)."""
    if epoch < 0 and not members:
        return False
    if transactional and epoch == -1 and not member_id:
        return False
    member = members.get(member_id)
    if member is None:
        raise no_member(member_id, group_id)
    if not transactional and member.classic is None and version < COMMIT_FROM:
        raise Refused(
            ErrorCode.UNSUPPORTED_VERSION,
            "Members of the consumer group protocol have to use OffsetCommit version 9 or above.",
        )
    known = current[member_id].epoch if member_id in current else 0
    if epoch == known:
        return False
    if epoch > known:
        raise Refused(
            stale(member), f"Received member epoch {epoch} is newer than current member epoch {known}."
        )
    return True


def stale(member: Member) -> ErrorCode:
    """A wrong epoch, in the words of the member's protocol."""
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def commit_epoch_error(
    member: Member, current: Current, epoch: int, topic_id: bytes | None, partition: int
) -> ErrorCode:
    """Whether a member may commit at an older epoch: for what it still has since then (KIP-1251)."""
    given = None
    if topic_id is not None:
        given = current.assigned.get(topic_id, {}).get(partition)
        if given is None:
            given = current.revoking.get(topic_id, {}).get(partition)
    if given is None or epoch < given:
        return stale(member)
    return ErrorCode.NONE


def check_fetch(
    members: dict[str, Member], current: dict[str, Current], member_id: str | None, epoch: int, group_id: str
) -> None:
    """Whether offsets may be fetched: always without a member; else at the member's epoch."""
    if member_id is None and epoch < 0:
        return
    member = members.get(member_id or "")
    if member is None:
        raise no_member(member_id or "", group_id)
    known = current[member.member_id].epoch if member.member_id in current else 0
    if epoch != known:
        raise Refused(
            stale(member),
            f"The received member epoch {epoch} does not match the expected member epoch {known}.",
        )

"""Who may commit offsets to a classic group, and with what error others are refused.

OffsetCommit 0 to 10 and TxnOffsetCommit; the rules for groups of the new protocol are not here.
"""

from __future__ import annotations

from coordinator.group.classic.events import NO_MEMBER_ID
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.states import GroupState
from protocol.errors import ErrorCode

GROUP_ID_NOT_FOUND_FROM = 9
"""OffsetCommit versions whose clients know GROUP_ID_NOT_FOUND (KIP-848)."""


def check_commit_without_group(generation: int, version: int, *, transactional: bool = False) -> ErrorCode:
    """For a group that does not exist: NONE means that the commit creates a simple group."""
    if generation < 0:
        return ErrorCode.NONE
    if transactional or version < GROUP_ID_NOT_FOUND_FROM:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.GROUP_ID_NOT_FOUND


def check_commit(
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    *,
    transactional: bool = False,
) -> ErrorCode:
    """The error for a commit with this identity, or NONE.

    Without generation, member and instance, a plain commit is for groups without members only; transactional
    ones of old clients carry no identity and pass. A plain commit while the assignment is awaited is too
    early.
    """
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if generation >= 0 or member_id != NO_MEMBER_ID or instance_id is not None:
        error = group.check_member(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    elif not transactional:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not transactional and group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE

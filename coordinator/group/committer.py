"""Whether a group takes a commit of offsets from whoever sends it.

Who may commit is the group's to say: a classic group by generation, a group of a newer protocol by the
member's epoch, and one of offsets alone lets everybody who names no member.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.group.classic.commit import check_commit, check_commit_without_group
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.modern.ports import Committer, ModernGroups
from coordinator.group.offsets import Commit
from coordinator.group.shard import GroupShard
from coordinator.result import CoordinatorError
from protocol.errors import ErrorCode


def check_committer(
    shard: GroupShard,
    group_id: str,
    committer: Committer,
    version: int,
    commits: Sequence[Commit],
    *,
    transactional: bool = False,
) -> ClassicGroup | None:
    """The classic group, if it is one, whose member has given a sign of life. Raises CoordinatorError.

    `version` is that of OffsetCommit, or with `transactional` of TxnOffsetCommit.
    """
    group, error = shard.groups.get(group_id), ErrorCode.NONE
    if group is not None:
        error = check_commit(group, *committer, transactional=transactional)
    elif (modern := shard.modern_group(group_id)) is not None:
        error = _commit_error(modern, group_id, committer, version, commits, transactional)
    elif not shard.offsets.has_any(group_id):
        error = check_commit_without_group(committer.generation, version, transactional=transactional)
    elif committer.generation >= 0:
        error = ErrorCode.UNKNOWN_MEMBER_ID  # a group of offsets alone is Empty
    if error is not ErrorCode.NONE:
        raise CoordinatorError(error)
    return group


def _commit_error(
    modern: ModernGroups,
    group_id: str,
    committer: Committer,
    version: int,
    commits: Sequence[Commit],
    transactional: bool,
) -> ErrorCode:
    """TxnOffsetCommit does not know STALE_MEMBER_EPOCH. One partition that is refused refuses them all."""
    error = modern.check_commit(group_id, committer, version, transactional=transactional)
    for each in commits:
        if error is not ErrorCode.NONE:
            break
        error = modern.check_partition(group_id, committer, each.topic, each.partition)
    if transactional and error is ErrorCode.STALE_MEMBER_EPOCH:
        return ErrorCode.ILLEGAL_GENERATION
    return error

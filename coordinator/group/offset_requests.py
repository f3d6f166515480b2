"""Offsets as request handlers see them: commit, fetch, delete; the ground that `GroupManager` stands on."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TypeAlias, TypeVar

from coordinator.group.classic.describe import offset_delete_error, read_topics
from coordinator.group.committer import check_committer
from coordinator.group.modern.ports import Committer
from coordinator.group.offsets import NO_RETENTION, Commit, Fetched, TopicPartition
from coordinator.group.repeated_commit import RepeatedCommit
from coordinator.group.shard import GroupShard
from coordinator.ports import Clock, Guard
from coordinator.result import NO_PRODUCER, CoordinatorError, Producer, Result
from coordinator.runtime import CoordinatorRuntime
from protocol.errors import ErrorCode

NO_READER = (None, -1)

R = TypeVar("R")
Errors: TypeAlias = list[ErrorCode]


class OffsetRequests:
    """Requests about offsets; `runtime` is that of __consumer_offsets."""

    def __init__(self, runtime: CoordinatorRuntime[GroupShard], clock: Clock) -> None:
        self.runtime = runtime
        self._clock = clock

    def partition_of(self, group_id: str | None, *, may_be_empty: bool = False) -> int:
        """Where a group lives. Raises CoordinatorError: INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE."""
        if group_id is None or (not group_id and not may_be_empty):
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        return self.runtime.partition_for(group_id)

    def commit_offsets(
        self,
        group_id: str,
        committer: Committer,
        version: int,
        commits: list[Commit],
        done: Callable[[ErrorCode, Errors | None], None],
        *,
        retention_ms: int = NO_RETENTION,
        producer: Producer = NO_PRODUCER,
        guard: Guard | None = None,
    ) -> None:
        """OffsetCommit, and with a producer TxnOffsetCommit: one error for each commit, or one for all."""
        transactional = producer != NO_PRODUCER

        def operation(shard: GroupShard) -> Result[Errors]:
            group = check_committer(shard, group_id, committer, version, commits, transactional=transactional)
            now_ms = self._clock.now_ms()
            records, errors = shard.offsets.commit(group_id, commits, now_ms, retention_ms)
            if group is not None:
                shard.commit_seen(group, committer.member_id, now_ms)
            return Result(records, errors, producer=producer, guard=guard)

        self._write(group_id, operation, done, may_be_empty=not transactional)

    def commit_again(self, prepared: RepeatedCommit, done: Callable[[ErrorCode, None], None]) -> None:
        """OffsetCommit of one that was good before; all its offsets are committed, or none."""
        self.runtime.write_prepared(prepared.partition, prepared, done)

    def fetch_offsets(
        self,
        group_id: str,
        partitions: list[TopicPartition] | None,
        done: Callable[[ErrorCode, list[Fetched] | None], None],
        *,
        require_stable: bool = False,
        reader: tuple[str | None, int] = NO_READER,
    ) -> None:
        """OffsetFetch for one group; None for partitions means all that it has.

        `reader` is the member id and epoch that version 9 and later may name.
        """

        def fetch(shard: GroupShard) -> list[Fetched]:
            modern = shard.modern_group(group_id)
            if modern is not None and (error := modern.check_fetch(group_id, *reader)):
                raise CoordinatorError(error)
            return shard.offsets.fetch(group_id, partitions, require_stable=require_stable)

        if require_stable:
            self._write(group_id, lambda shard: Result([], fetch(shard)), done, may_be_empty=True)
            return
        try:
            partition = self.partition_of(group_id, may_be_empty=True)
            found = self.runtime.read(partition, fetch)
        except CoordinatorError as error:
            done(error.error, None)
            return
        done(ErrorCode.NONE, found)

    def cells_of(self, group_id: str) -> list[TopicPartition]:
        """The partitions that a group has offsets for; none where it is not looked after here."""
        try:
            partition = self.partition_of(group_id, may_be_empty=True)
            return self.runtime.read(partition, lambda shard: shard.offsets.cells(group_id))
        except CoordinatorError:
            return []

    def delete_offsets(
        self,
        group_id: str,
        partitions: list[TopicPartition],
        done: Callable[[ErrorCode, Errors | None], None],
    ) -> None:
        """OffsetDelete: one error for each partition, or one for all."""

        def operation(shard: GroupShard) -> Result[Errors]:
            group, modern = shard.groups.get(group_id), shard.modern_group(group_id)
            if group is None and modern is None and not shard.offsets.has_any(group_id):
                raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND)
            if modern is not None and modern is shard.share:
                raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND)
            if group is not None and (error := offset_delete_error(group)) is not ErrorCode.NONE:
                raise CoordinatorError(error)
            if modern is not None:
                read: Set[str] | None = modern.subscribed(group_id)
            else:
                read = read_topics(group) if group is not None else frozenset()
            errors = [
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if read is None or topic in read else ErrorCode.NONE
                for topic, _ in partitions
            ]
            free = [cell for cell, error in zip(partitions, errors, strict=True) if error is ErrorCode.NONE]
            return Result(shard.offsets.delete(group_id, free), errors)

        self._write(group_id, operation, done)

    def _write(
        self,
        group_id: str,
        operation: Callable[[GroupShard], Result[R]],
        done: Callable[[ErrorCode, R | None], None],
        *,
        may_be_empty: bool = False,
    ) -> None:
        try:
            partition = self.partition_of(group_id, may_be_empty=may_be_empty)
        except CoordinatorError as error:
            done(error.error, None)
            return
        self.runtime.write(partition, operation, done)

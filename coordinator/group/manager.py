"""The group coordinator as request handlers see it: one call for each kind of request.

Checked here, before anything else and in this order: the group id, whether this broker coordinates groups at
all, whether the group's partition is loading, whether it is owned. Those refusals are raised as
CoordinatorError, or told through `done` where there is one. Authorisation and whether topics exist come
before, in the handlers, as they know the request's principal and listener.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from coordinator.group.classic import events as ev
from coordinator.group.classic.commit import check_commit, check_commit_without_group
from coordinator.group.classic.describe import (
    delete_error,
    described,
    described_absent,
    is_subscribed,
    listed,
    offset_delete_error,
)
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.modern.ports import Committer as Committer
from coordinator.group.offsets import NO_RETENTION, Commit, Fetched, TopicPartition
from coordinator.group.shard import Answer, GroupShard, Removal
from coordinator.ports import Clock, Timer
from coordinator.result import NO_PRODUCER, CoordinatorError, Producer, Result
from coordinator.runtime import CoordinatorRuntime
from protocol import messages as m
from protocol.errors import ErrorCode

RETENTION_MS = 10080 * 60_000
"""Default of offsets.retention.minutes."""

R = TypeVar("R")
Errors: TypeAlias = list[ErrorCode]
MakeEvent: TypeAlias = Callable[[int], ev.Request]


class GroupManager:
    """All requests about groups; `runtime` is that of __consumer_offsets."""

    def __init__(
        self, runtime: CoordinatorRuntime[GroupShard], clock: Clock, timer: Timer, retention_ms: int
    ) -> None:
        self.runtime = runtime
        self._timer = timer
        self._clock = clock
        self.retention_ms = retention_ms

    def partition_of(self, group_id: str | None, *, may_be_empty: bool = False) -> int:
        """Where a group lives. Raises CoordinatorError: INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE."""
        if group_id is None or (not group_id and not may_be_empty):
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        return self.runtime.partition_for(group_id)

    def handle(self, group_id: str, make_event: MakeEvent, answer: Answer) -> None:
        """JoinGroup, SyncGroup, Heartbeat, LeaveGroup: `make_event` gets the token for its event.

        `answer` is called once, at once or later. Raises CoordinatorError without having called it.
        """
        shard = self.runtime.read(self.partition_of(group_id), lambda shard: shard)
        shard.handle(group_id, make_event(shard.expect_answer(answer)))

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
    ) -> None:
        """OffsetCommit, and with a producer TxnOffsetCommit: one error for each commit, or one for all."""
        transactional = producer != NO_PRODUCER

        def operation(shard: GroupShard) -> Result[Errors]:
            group, error = shard.groups.get(group_id), ErrorCode.NONE
            if group is not None:
                error = check_commit(group, *committer, transactional=transactional)
            elif not shard.offsets.has_any(group_id):
                error = check_commit_without_group(committer.generation, version, transactional=transactional)
            elif committer.generation >= 0:
                error = ErrorCode.UNKNOWN_MEMBER_ID  # a group of offsets alone is Empty
            if error is not ErrorCode.NONE:
                raise CoordinatorError(error)
            records, errors = shard.offsets.commit(group_id, commits, self._clock.now_ms(), retention_ms)
            if group is not None:
                shard.commit_seen(group, committer.member_id)
            return Result(records, errors, producer=producer)

        self._write(group_id, operation, done, may_be_empty=not transactional)

    def fetch_offsets(
        self,
        group_id: str,
        partitions: list[TopicPartition] | None,
        done: Callable[[ErrorCode, list[Fetched] | None], None],
        *,
        require_stable: bool = False,
    ) -> None:
        """OffsetFetch for one group; None for partitions means all that it has."""
        if require_stable:
            self._write(
                group_id,
                lambda shard: Result([], shard.offsets.fetch(group_id, partitions, require_stable=True)),
                done,
                may_be_empty=True,
            )
            return
        try:
            partition = self.partition_of(group_id, may_be_empty=True)
            found = self.runtime.read(partition, lambda shard: shard.offsets.fetch(group_id, partitions))
        except CoordinatorError as error:
            done(error.error, None)
            return
        done(ErrorCode.NONE, found)

    def delete_offsets(
        self,
        group_id: str,
        partitions: list[TopicPartition],
        done: Callable[[ErrorCode, Errors | None], None],
    ) -> None:
        """OffsetDelete: one error for each partition, or one for all."""

        def operation(shard: GroupShard) -> Result[Errors]:
            group = shard.groups.get(group_id)
            if group is None and not shard.offsets.has_any(group_id):
                raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND)
            if group is not None and (error := offset_delete_error(group)) is not ErrorCode.NONE:
                raise CoordinatorError(error)
            errors = [_subscribed(group, topic) for topic, _ in partitions]
            free = [cell for cell, error in zip(partitions, errors, strict=True) if error is ErrorCode.NONE]
            return Result(shard.offsets.delete(group_id, free), errors)

        self._write(group_id, operation, done)

    def delete_group(self, group_id: str, done: Callable[[ErrorCode, None], None]) -> None:
        """DeleteGroups for one group."""

        def removal(shard: GroupShard) -> Removal:
            group = shard.groups.get(group_id)
            if group is None and not shard.offsets.has_any(group_id):
                raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND)
            if group is not None and (error := delete_error(group)) is not ErrorCode.NONE:
                raise CoordinatorError(error)
            return shard.remove(group_id)

        try:
            partition = self.partition_of(group_id, may_be_empty=True)
        except CoordinatorError as error:
            done(error.error, None)
            return
        self._remove(partition, removal, done)

    def describe(self, group_id: str, version: int) -> m.DescribeGroupsResponse.DescribedGroup:
        """DescribeGroups for one group. Raises CoordinatorError."""

        def operation(shard: GroupShard) -> m.DescribeGroupsResponse.DescribedGroup:
            group = shard.groups.get(group_id)
            if group is not None:
                return described(group)
            if shard.offsets.has_any(group_id):
                return described(shard.simple_group(group_id))
            return described_absent(group_id, version)

        return self.runtime.read(self.partition_of(group_id, may_be_empty=True), operation)

    def list_groups(self) -> list[m.ListGroupsResponse.ListedGroup]:
        """Every group that this broker coordinates. Raises CoordinatorError, also while any are loading."""

        def operation(shard: GroupShard) -> list[m.ListGroupsResponse.ListedGroup]:
            simple = [shard.simple_group(name) for name in shard.offsets.groups() if name not in shard.groups]
            return [listed(group) for group in [*shard.groups.values(), *simple]]

        return [group for part in self.runtime.read_all(operation) for group in part]

    def expire(self, done: Callable[[ErrorCode, None], None]) -> None:
        """What is due every offsets.retention.check.interval.ms; `done` for each partition served here."""

        def make(shard: GroupShard, groups: list[str]) -> Removal:
            return shard.remove_expired(groups, self._clock.now_ms(), self.retention_ms)

        for partition in self.runtime.active_partitions():
            self._in_slices(partition, make, done)

    def topics_deleted(self, topics: Iterable[str], done: Callable[[ErrorCode, None], None]) -> None:
        """Remove the offsets of deleted topics from all groups; `done` for each partition served here."""
        gone = frozenset(topics)

        def make(shard: GroupShard, groups: list[str]) -> Removal:
            return Removal(shard.offsets.delete_topics(groups, lambda topic, _: topic in gone), lambda: None)

        for partition in self.runtime.active_partitions():
            self._in_slices(partition, make, done)

    def _in_slices(
        self,
        partition: int,
        make: Callable[[GroupShard, list[str]], Removal],
        done: Callable[[ErrorCode, None], None],
    ) -> None:
        """Go through the groups of a partition, a slice a turn of the timer. Ends at the first error."""
        slices = self.runtime.read(partition, lambda shard: shard.slices())
        slices.reverse()

        def step() -> None:
            groups = slices.pop()
            self._remove(partition, lambda shard: make(shard, groups), went)

        def went(error: ErrorCode, _: None) -> None:
            if error is not ErrorCode.NONE or not slices:
                done(error, None)
            else:
                self._timer.add(0, step)

        if slices:
            step()
        else:
            done(ErrorCode.NONE, None)

    def _remove(
        self,
        partition: int,
        make: Callable[[GroupShard], Removal],
        done: Callable[[ErrorCode, None], None],
    ) -> None:
        def operation(shard: GroupShard) -> Result[None]:
            removal = make(shard)
            return Result(removal.records, None, undo=removal.undo)

        self.runtime.write(partition, operation, done)

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


def _subscribed(group: ClassicGroup | None, topic: str) -> ErrorCode:
    if group is not None and is_subscribed(group, topic):
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    return ErrorCode.NONE

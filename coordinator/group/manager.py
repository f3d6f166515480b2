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
from coordinator.group.consumer.classic_member import Answer as ClassicAnswer
from coordinator.group.consumer.classic_member import refused
from coordinator.group.consumer.heartbeat import Caller
from coordinator.group.modern.ports import Committer as Committer
from coordinator.group.modern.ports import ModernGroups
from coordinator.group.offsets import NO_RETENTION, Commit, Fetched, TopicPartition
from coordinator.group.shard import Answer, GroupShard, Removal
from coordinator.ports import Clock, Timer
from coordinator.result import NO_PRODUCER, CoordinatorError, Producer, Result
from coordinator.runtime import CoordinatorRuntime
from protocol import messages as m
from protocol.errors import ErrorCode

RETENTION_MS = 10080 * 60_000
"""Default of offsets.retention.minutes."""

NO_READER = (None, -1)
NO_TOKEN = 0

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
        partition = self.partition_of(group_id)
        shard = self.runtime.read(partition, lambda shard: shard)
        if (modern := shard.modern_group(group_id)) is not None:
            event = make_event(NO_TOKEN)
            if modern is not shard.consumer or not modern.is_empty(group_id):
                self._handle_in_modern(partition, group_id, modern, event, answer)
                return
            if isinstance(event, ev.JoinGroup):
                self._make_classic(partition, group_id)
        shard.handle(group_id, make_event(shard.expect_answer(answer)))

    def _handle_in_modern(
        self, partition: int, group_id: str, modern: ModernGroups, event: ev.Request, answer: Answer
    ) -> None:
        """A request of the classic protocol to a group of a newer one: consumer groups take it."""

        def operation(shard: GroupShard) -> Result[ClassicAnswer]:
            if modern is shard.consumer:
                return shard.consumer.classic_request(group_id, event)
            joins = isinstance(event, ev.JoinGroup)
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if joins else ErrorCode.UNKNOWN_MEMBER_ID
            return Result([], ClassicAnswer(refused(event, error)))

        def done(error: ErrorCode, given: ClassicAnswer | None) -> None:
            if given is None:
                answer(refused(event, error))
                return
            if given.committed is not None:
                given.committed()
            answer(given.response)

        self.runtime.write(partition, operation, done)

    def _make_classic(self, partition: int, group_id: str) -> None:
        """An empty consumer group makes room for a classic one, which is about to begin."""

        def operation(shard: GroupShard) -> Result[None]:
            return Result(shard.consumer.tombstones(group_id), None, undo=lambda: shard.drop_group(group_id))

        self.runtime.write(partition, operation, lambda error, _: None)

    def consumer_heartbeat(
        self,
        request: m.ConsumerGroupHeartbeatRequest,
        version: int,
        caller: Caller,
        done: Callable[[ErrorCode, m.ConsumerGroupHeartbeatResponse | None], None],
    ) -> None:
        """ConsumerGroupHeartbeat: what is wrong with the request or the member stands in the response."""
        self._write(
            request.group_id,
            lambda shard: shard.consumer.heartbeat(request, version, caller),
            done,
            may_be_empty=True,
        )

    def consumer_describe(self, group_id: str) -> m.ConsumerGroupDescribeResponse.DescribedGroup:
        """ConsumerGroupDescribe for one group. Raises CoordinatorError."""
        return self.runtime.read(
            self.partition_of(group_id), lambda shard: shard.consumer.described(group_id)
        )

    def beat(self, group_id: str, event: ev.Heartbeat) -> ErrorCode | None:
        """The short way of a Heartbeat; None: there is no classic group, take the long way through `handle`.

        Raises CoordinatorError.
        """
        return self.runtime.read(self.partition_of(group_id), lambda shard: shard.beat(group_id, event))

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
            modern = shard.modern_group(group_id)
            if modern is not None:
                error = _commit_error(modern, group_id, committer, version, commits, transactional)
            elif group is not None:
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
            if group is not None and (error := offset_delete_error(group)) is not ErrorCode.NONE:
                raise CoordinatorError(error)
            if modern is not None:
                read = {topic: modern.is_subscribed(group_id, topic) for topic, _ in partitions}
            else:
                read = {topic: group is not None and is_subscribed(group, topic) for topic, _ in partitions}
            errors = [
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if read[topic] else ErrorCode.NONE
                for topic, _ in partitions
            ]
            free = [cell for cell, error in zip(partitions, errors, strict=True) if error is ErrorCode.NONE]
            return Result(shard.offsets.delete(group_id, free), errors)

        self._write(group_id, operation, done)

    def delete_group(self, group_id: str, done: Callable[[ErrorCode, None], None]) -> None:
        """DeleteGroups for one group."""

        def removal(shard: GroupShard) -> Removal:
            group, modern = shard.groups.get(group_id), shard.modern_group(group_id)
            if group is None and modern is None and not shard.offsets.has_any(group_id):
                raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND)
            if group is not None and (error := delete_error(group)) is not ErrorCode.NONE:
                raise CoordinatorError(error)
            if modern is not None and not modern.is_empty(group_id):
                raise CoordinatorError(ErrorCode.NON_EMPTY_GROUP)
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
            if shard.modern_group(group_id) is not None:
                absent = described_absent(group_id, version)
                if absent.error_code:
                    absent.error_message = f"Group {group_id} is not a classic group."
                return absent
            if shard.offsets.has_any(group_id):
                return described(shard.simple_group(group_id))
            return described_absent(group_id, version)

        return self.runtime.read(self.partition_of(group_id, may_be_empty=True), operation)

    def list_groups(self) -> list[m.ListGroupsResponse.ListedGroup]:
        """Every group that this broker coordinates. Raises CoordinatorError, also while any are loading."""

        def operation(shard: GroupShard) -> list[m.ListGroupsResponse.ListedGroup]:
            found = [listed(group) for group in shard.groups.values()]
            for modern in shard.modern:
                found += [modern.listed(name) for name in modern.committed_group_ids()]
            named = {each.group_id for each in found}
            return found + [
                listed(shard.simple_group(name)) for name in shard.offsets.groups() if name not in named
            ]

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


def _commit_error(
    modern: ModernGroups,
    group_id: str,
    committer: Committer,
    version: int,
    commits: list[Commit],
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

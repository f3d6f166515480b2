"""The group coordinator as request handlers see it: one call for each kind of request.

Checked here, before anything else and in this order: the group id, whether this broker coordinates groups at
all, whether the group's partition is loading, whether it is owned. Those refusals are raised as
CoordinatorError, or told through `done` where there is one. Authorisation and whether topics exist come
before, in the handlers, as they know the request's principal and listener.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from coordinator.group.classic import events as ev
from coordinator.group.classic.describe import delete_error, described, described_absent, listed
from coordinator.group.consumer.classic_member import Answer as ClassicAnswer
from coordinator.group.consumer.classic_member import refused
from coordinator.group.consumer.heartbeat import Caller
from coordinator.group.modern.ports import Committer as Committer
from coordinator.group.modern.ports import ModernGroups
from coordinator.group.offset_requests import NO_READER as NO_READER
from coordinator.group.offset_requests import OffsetRequests
from coordinator.group.shard import Answer, GroupShard, Removal
from coordinator.group.share.requests import ShareRequests
from coordinator.ports import Clock, Timer
from coordinator.result import CoordinatorError, Result
from coordinator.runtime import CoordinatorRuntime
from protocol import messages as m
from protocol.errors import ErrorCode

RETENTION_MS = 10080 * 60_000
"""Default of offsets.retention.minutes."""

NO_TOKEN = 0

MakeEvent: TypeAlias = Callable[[int], ev.Request]


class GroupManager(OffsetRequests):
    """All requests about groups; `runtime` is that of __consumer_offsets."""

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        clock: Clock,
        timer: Timer,
        retention_ms: int,
        consumer_enabled: Callable[[], bool] = lambda: True,
    ) -> None:
        """`consumer_enabled` tells whether KIP-848 may be used; asked before anything else.

        `share` is set by the owner where there are share groups.
        """
        super().__init__(runtime, clock)
        self._consumer_enabled = consumer_enabled
        self._timer = timer
        self.retention_ms = retention_ms
        self.share: ShareRequests | None = None

    def handle(self, group_id: str, make_event: MakeEvent, answer: Answer) -> None:
        """JoinGroup, SyncGroup, Heartbeat, LeaveGroup: `make_event` gets the token for its event.

        `answer` is called once, at once or later. Raises CoordinatorError without having called it.
        """
        partition = self.partition_of(group_id)
        shard = self.runtime.shard(partition)
        if group_id not in shard.groups and (modern := shard.modern_group(group_id)) is not None:
            event = make_event(NO_TOKEN)
            if modern is not shard.consumer or not modern.is_empty(group_id):
                self._handle_in_modern(partition, group_id, modern, event, answer)
                return
            if shard.begins_group(event):
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
        """An empty consumer group makes room for a classic one, which is about to begin. Raises
        CoordinatorError where that is refused at once; where it fails later, the classic group goes again.
        """
        refused = ErrorCode.NONE

        def operation(shard: GroupShard) -> Result[None]:
            return Result(shard.consumer.tombstones(group_id), None, undo=lambda: shard.drop_group(group_id))

        def done(error: ErrorCode, _: None) -> None:
            nonlocal refused
            refused = error

        self.runtime.write(partition, operation, done)
        if refused is not ErrorCode.NONE:
            raise CoordinatorError(refused)

    def consumer_heartbeat(
        self,
        request: m.ConsumerGroupHeartbeatRequest,
        version: int,
        caller: Caller,
        done: Callable[[ErrorCode, m.ConsumerGroupHeartbeatResponse | None], None],
    ) -> None:
        """ConsumerGroupHeartbeat: what is wrong with the request or the member stands in the response."""
        if not self._consumer_enabled():
            done(ErrorCode.UNSUPPORTED_VERSION, None)
            return
        self._write(
            request.group_id,
            lambda shard: shard.consumer.heartbeat(request, version, caller),
            done,
            may_be_empty=True,
        )

    def consumer_describe(self, group_id: str) -> m.ConsumerGroupDescribeResponse.DescribedGroup:
        """ConsumerGroupDescribe for one group. Raises CoordinatorError."""
        if not self._consumer_enabled():
            raise CoordinatorError(ErrorCode.UNSUPPORTED_VERSION)
        return self.runtime.read(
            self.partition_of(group_id), lambda shard: shard.consumer.described(group_id)
        )

    def beat(self, group_id: str, event: ev.Heartbeat) -> ErrorCode | None:
        """The short way of a Heartbeat; None: there is no classic group, take the long way through `handle`.

        Raises CoordinatorError.
        """
        return self.runtime.read(self.partition_of(group_id), lambda shard: shard.beat(group_id, event))

    def delete_group(self, group_id: str, done: Callable[[ErrorCode, None], None]) -> None:
        """DeleteGroups for one group; the state of a share group goes before the group."""
        share = self.share
        try:
            partition = self.partition_of(group_id, may_be_empty=True)
            is_share = self.runtime.read(partition, lambda shard: _is_share(shard, group_id))
        except CoordinatorError as error:
            done(error.error, None)
            return
        if share is None or not is_share:
            self._delete_group(partition, group_id, done)
            return

        def gone(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                self._delete_group(partition, group_id, done)
            else:
                done(error, None)

        share.delete_state(group_id, gone)

    def _delete_group(self, partition: int, group_id: str, done: Callable[[ErrorCode, None], None]) -> None:
        def removal(shard: GroupShard) -> Removal:
            group, modern = shard.groups.get(group_id), shard.modern_group(group_id)
            if group is None and modern is None and not shard.offsets.has_any(group_id):
                raise CoordinatorError(ErrorCode.GROUP_ID_NOT_FOUND)
            if group is not None and (error := delete_error(group)) is not ErrorCode.NONE:
                raise CoordinatorError(error)
            if modern is not None and not modern.is_empty(group_id):
                raise CoordinatorError(ErrorCode.NON_EMPTY_GROUP)
            return shard.remove(group_id)

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

        self._in_slices(make, done)

    def topics_deleted(
        self,
        topics: Iterable[str],
        done: Callable[[ErrorCode, None], None],
        topic_ids: Iterable[bytes] = (),
    ) -> None:
        """Remove the offsets of deleted topics from all groups, and share groups' notes about their state;
        `done` for each partition served here.
        """
        gone, gone_ids = frozenset(topics), frozenset(topic_ids)

        def make(shard: GroupShard, groups: list[str]) -> Removal:
            records = shard.offsets.delete_topics(groups, lambda topic, _: topic in gone)
            if shard.share is not None:
                records += shard.share.without_topics(groups, gone_ids)
            return Removal(records, lambda: None)

        self._in_slices(make, done)

    def _in_slices(
        self,
        make: Callable[[GroupShard, list[str]], Removal],
        done: Callable[[ErrorCode, None], None],
    ) -> None:
        """Go through the groups of all partitions, one slice a turn of the timer, and the next of a partition
        when the one before is written. Ends for a partition at its first error.
        """
        slices: dict[int, list[list[str]]] = {}
        ready: deque[int] = deque()
        is_set = False

        def step() -> None:
            nonlocal is_set
            is_set = False
            partition = ready.popleft()
            groups = slices[partition].pop()
            self._remove(
                partition, lambda shard: make(shard, groups), lambda error, _: went(partition, error)
            )
            go_on()

        def went(partition: int, error: ErrorCode) -> None:
            if error is not ErrorCode.NONE or not slices[partition]:
                done(error, None)
            else:
                ready.append(partition)
                go_on()

        def go_on() -> None:
            nonlocal is_set
            if ready and not is_set:
                is_set = True
                self._timer.add(0, step)

        for partition in self.runtime.active_partitions():
            found = slices[partition] = self.runtime.read(partition, lambda shard: shard.slices())
            found.reverse()
            if found:
                ready.append(partition)
            else:
                done(ErrorCode.NONE, None)
        if ready:
            step()

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


def _is_share(shard: GroupShard, group_id: str) -> bool:
    return shard.share is not None and shard.share.exists(group_id)

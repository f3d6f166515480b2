"""The consumer groups of one shard: the door for requests, and `ModernGroups` for the shard and the manager.

Operations return records and an answer; the runtime appends the records and replays them into the tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from coordinator.group.classic import events as ev
from coordinator.group.consumer import checks, describe
from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.classic_member import Answer, ClassicRequests
from coordinator.group.consumer.downgrade import Downgrades
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.errors import Refused
from coordinator.group.consumer.heartbeat import Caller, Heartbeats
from coordinator.group.consumer.leave import leave, remove_members
from coordinator.group.consumer.member import JOIN_EPOCH, MemberState
from coordinator.group.consumer.regexes import RegexResolver
from coordinator.group.consumer.settings import ConsumerSettings
from coordinator.group.consumer.subscriptions import subscribed_topics
from coordinator.group.consumer.tables import KEY_TYPES, ConsumerTables
from coordinator.group.consumer.upgrade import ClassicSide, Upgrades
from coordinator.group.consumer.watch import Watch
from coordinator.group.modern.ports import Committer, ShardParts
from coordinator.group.modern.steps import LongWork
from coordinator.group.offset_expiry import Expiry
from coordinator.result import CoordinatorRecord, Result
from protocol import messages as m
from protocol.errors import ErrorCode

_log = logging.getLogger(__name__)
R = TypeVar("R")


class ConsumerGroups:
    """See the module."""

    key_types = KEY_TYPES

    def __init__(self, parts: ShardParts, settings: ConsumerSettings, classic: ClassicSide) -> None:
        self.tables = ConsumerTables(parts.context.journal, parts.unknown, parts.room, parts.assigned)
        self._parts = parts
        self._settings = settings
        watch = Watch(parts, self.tables, self._fence)
        assigning = LongWork("consumer target", parts.context.timers)
        self._env = Environment(parts, settings, self.tables, watch, assigning)
        self._resolver = RegexResolver(self._env)
        self._downgrades = Downgrades(self._env, classic)
        self._heartbeats = Heartbeats(self._env, Upgrades(self._env, classic), self._resolver)
        self._classic = ClassicRequests(self._env, self._downgrades, self._resolver)

    def heartbeat(
        self, request: m.ConsumerGroupHeartbeatRequest, version: int, caller: Caller
    ) -> Result[m.ConsumerGroupHeartbeatResponse]:
        """ConsumerGroupHeartbeat; refusals are answers."""
        try:
            checks.check_heartbeat(request, version, self._settings.assignors)
            if request.member_epoch < JOIN_EPOCH:
                return leave(self._env, self._downgrades, request)
            return self._heartbeats.heartbeat(request, caller)
        except Refused as error:
            return Result(
                [], m.ConsumerGroupHeartbeatResponse(error_code=error.error, error_message=error.text)
            )

    def classic_request(self, group_id: str, event: ev.Request) -> Result[Answer]:
        """A request of the classic protocol to a consumer group that has members."""
        return self._classic.handle(group_id, event)

    def described(self, group_id: str) -> m.ConsumerGroupDescribeResponse.DescribedGroup:
        """A group as ConsumerGroupDescribe shows it, also if there is none."""
        if not self.tables.exists_committed(group_id):
            other = self._parts.is_taken(group_id)
            text = f"Group {group_id} is not a consumer group." if other else f"Group {group_id} not found."
            return describe.described_refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, text)
        return describe.described(self._env, group_id)

    def replay(self, kind: int, key: bytes, value: bytes | None) -> None:
        """Apply a record. Raises MalformedMessage."""
        self.tables.replay(kind, key, value)

    def on_loaded(self, now_ms: int) -> None:
        """Begin the sessions of all members, and the deadlines of those that have to give something up."""
        for group_id, member_id, member in list(self.tables.members.items()):
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
            else:
                timeout_ms = self._settings.group_config(group_id, "consumer.session.timeout.ms")
            self._env.watch.sessions.renew(group_id, member_id, timeout_ms)
            current = self.tables.current.get(group_id, member_id)
            if (
                current is not None
                and current.state is MemberState.UNREVOKED_PARTITIONS
                and member.classic is None
            ):
                self._env.watch.await_revocation(
                    group_id, member_id, current.epoch, member.rebalance_timeout_ms
                )

    def on_unloaded(self) -> None:
        """Forget what is under way."""
        self._env.watch.sessions.clear()
        self._env.seen.clear()
        self._env.resolved.clear()
        self._resolver.clear()

    def exists(self, group_id: str) -> bool:
        """Whether there is a consumer group of this id, live."""
        return self.tables.exists(group_id)

    def group_ids(self) -> list[str]:
        """All consumer groups, live."""
        return self.tables.group_ids()

    def committed_group_ids(self) -> list[str]:
        """All consumer groups, by committed records."""
        return self.tables.committed_group_ids()

    def listed(self, group_id: str) -> m.ListGroupsResponse.ListedGroup:
        """A committed group as ListGroups shows it."""
        return describe.listed(self._env, group_id)

    def is_empty(self, group_id: str) -> bool:
        """Whether a group has no members."""
        return not self.tables.members.row(group_id)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Records that remove an empty group."""
        self._env.forget(group_id)
        return self.tables.group_tombstones(group_id)

    def check_commit(
        self, group_id: str, committer: Committer, version: int, *, transactional: bool
    ) -> ErrorCode:
        """Whether somebody may commit offsets to a group."""
        return _error_of(
            lambda: checks.check_commit(
                self.tables.members.row(group_id),
                self.tables.current.row(group_id),
                committer.member_id,
                committer.generation,
                version,
                transactional=transactional,
                group_id=group_id,
            )
        )

    def check_partition(self, group_id: str, committer: Committer, topic: str, partition: int) -> ErrorCode:
        """Whether a commit that passed `check_commit` may touch a partition."""
        member = self.tables.members.get(group_id, committer.member_id)
        current = self.tables.current.get(group_id, committer.member_id)
        if member is None or current is None or committer.generation == current.epoch:
            return ErrorCode.NONE
        facts = self._parts.topics.topic(topic)
        topic_id = None if facts is None else facts.topic_id
        return checks.commit_epoch_error(member, current, committer.generation, topic_id, partition)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether somebody may fetch a group's offsets."""
        return _error_of(
            lambda: checks.check_fetch(
                self.tables.members.row(group_id),
                self.tables.current.row(group_id),
                member_id,
                epoch,
                group_id,
            )
        )

    def subscribed(self, group_id: str) -> set[str]:
        """The topics that members may read."""
        members = self.tables.members.row(group_id)
        return subscribed_topics(members.values(), self.tables.regexes.row(group_id))

    def expiry(self, group_id: str) -> Expiry | None:
        """Offsets of topics that nobody subscribes to expire, counted from their commits."""
        return Expiry(kept_topics=frozenset(self.subscribed(group_id)))

    def _fence(self, group_id: str, member_id: str, why: str) -> None:
        """A member has lost its place: a write of its own, tried again at the next session's end."""

        def operation() -> Result[None]:
            change = GroupChange(self.tables, group_id)
            member = change.members.get(member_id)
            if member is not None:
                remove_members(self._env, self._downgrades, change, [member])
            return change.result(None)

        def decided(error: ErrorCode, _: None) -> None:
            if error is ErrorCode.NONE:
                return
            _log.warning("Group %s: member %s was not removed: %s", group_id, member_id, error.message)
            timeout_ms = self._settings.group_config(group_id, "consumer.session.timeout.ms")
            if self.tables.members.get(group_id, member_id) is not None:
                self._env.watch.sessions.renew(group_id, member_id, timeout_ms)

        _log.info("Group %s: member %s is removed, %s", group_id, member_id, why)
        self._parts.context.write(operation, decided)


def _error_of(check: Callable[[], object]) -> ErrorCode:
    try:
        check()
    except Refused as error:
        return error.error
    return ErrorCode.NONE

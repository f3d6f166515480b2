"""Requests about share groups as handlers see them; those that take the share coordinator go in steps:

- a heartbeat is answered when its records are committed; then the state of new partitions is initialized, and
  a second record says for which of them that went well;
- altering, deleting offsets and deleting a group note first what is about to happen, then have the share
  coordinator do it, then note that it is done. Who asks hears the outcome at the end.

A step that is lost with its broker leaves partitions initializing or deleting: the first begin again with a
heartbeat after `initialize_retry_ms`, the second when somebody asks again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from coordinator.group.share.groups import ShareGroups, described_refused
from coordinator.group.share.heartbeat import Answer, Heartbeat, Initialize, heartbeat, refusal, refused
from coordinator.group.share.offsets import (
    Altering,
    Deleting,
    Refused,
    begin_alter,
    begin_delete_group,
    begin_delete_offsets,
    end_delete_offsets,
    settle_initialized,
)
from coordinator.group.share.ports import Cell, Errors, LatestOffsets, SharePersister, Summary
from coordinator.group.share.state_partitions import Partitions
from coordinator.result import CoordinatorError, Result
from coordinator.runtime import CoordinatorRuntime
from protocol import messages as m
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.group.shard import GroupShard

_log = logging.getLogger(__name__)
R = TypeVar("R")


class ShareRequests:
    """See the module. `persister` is asked for when it is needed first: there may be no share coordinator
    before.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[GroupShard],
        persister: Callable[[], SharePersister],
        latest: LatestOffsets,
    ) -> None:
        self._runtime = runtime
        self._persister = persister
        self._latest = latest

    def heartbeat(
        self,
        request: m.ShareGroupHeartbeatRequest,
        client_id: str,
        client_host: str,
        done: Callable[[m.ShareGroupHeartbeatResponse], None],
    ) -> None:
        """ShareGroupHeartbeat."""
        if (refused_with := refusal(request)) is not None:
            done(refused_with)
            return
        names = request.subscribed_topic_names
        ask = Heartbeat(
            request.group_id,
            request.member_id,
            request.member_epoch,
            request.rack_id,
            None if names is None else frozenset(names),
            client_id,
            client_host,
        )

        def decided(error: ErrorCode, answer: Answer | None) -> None:
            if answer is None:
                done(refused(error))
                return
            done(answer.response)
            if answer.initialize is not None:
                self._initialize(answer.initialize, lambda errors: None)

        self._write(request.group_id, lambda groups: heartbeat(groups, ask), decided)

    def describe(self, group_id: str) -> m.ShareGroupDescribeResponse.DescribedGroup:
        """ShareGroupDescribe for one group."""
        if not group_id:
            return described_refused(group_id, ErrorCode.INVALID_GROUP_ID, None)
        try:
            return self._read(group_id, lambda groups: groups.described(group_id))
        except CoordinatorError as error:
            return described_refused(group_id, error.error, error.error.message)

    def alter_offsets(
        self,
        group_id: str,
        offsets: Mapping[str, Mapping[int, int]],
        done: Callable[[Refused | Altering, Errors], None],
    ) -> None:
        """AlterShareGroupOffsets: offsets by topic name and partition; partitions left out of the plan are
        not there. `done` gets the plan, and an error for each partition in it.
        """

        def decided(error: ErrorCode, plan: Altering | Refused | None) -> None:
            if plan is None or isinstance(plan, Refused):
                done(plan or Refused(error, error.message), {})
                return
            todo = Initialize(group_id, plan.state_epoch, plan.start_offsets)
            self._initialize(todo, lambda errors: done(plan, errors))

        self._write(group_id, lambda groups: _told(lambda: begin_alter(groups, group_id, offsets)), decided)

    def delete_offsets(
        self,
        group_id: str,
        names: list[str],
        done: Callable[[Refused | Deleting, dict[bytes, ErrorCode]], None],
    ) -> None:
        """DeleteShareGroupOffsets: `done` gets the plan, and an error for each topic in it."""

        def decided(error: ErrorCode, plan: Deleting | Refused | None) -> None:
            if plan is None or isinstance(plan, Refused):
                done(plan or Refused(error, error.message), {})
            elif not plan.partitions:
                done(plan, {})
            else:
                self._persister().delete(
                    group_id, plan.partitions, lambda errors: removed(plan, _by_topic(errors))
                )

        def removed(plan: Deleting, errors: dict[bytes, ErrorCode]) -> None:
            gone = [topic_id for topic_id, error in errors.items() if error is ErrorCode.NONE]

            def noted(error: ErrorCode, _: None) -> None:
                if error is ErrorCode.NONE:
                    done(plan, errors)
                else:
                    done(Refused(error, error.message), {})

            self._write(group_id, lambda groups: end_delete_offsets(groups, group_id, gone), noted)

        self._write(
            group_id, lambda groups: _told(lambda: begin_delete_offsets(groups, group_id, names)), decided
        )

    def delete_state(self, group_id: str, done: Callable[[ErrorCode], None]) -> None:
        """DeleteGroups, the first half: the group's share state goes. An error: the group stays."""

        def decided(error: ErrorCode, partitions: Partitions | Refused | None) -> None:
            if isinstance(partitions, Refused):
                done(partitions.error)
            elif not partitions:
                done(error)
            else:
                self._persister().delete(group_id, partitions, removed)

        def removed(errors: Errors) -> None:
            done(next((error for error in errors.values() if error is not ErrorCode.NONE), ErrorCode.NONE))

        self._write(group_id, lambda groups: _told(lambda: begin_delete_group(groups, group_id)), decided)

    def initialized(self, group_id: str) -> dict[bytes, list[int]]:
        """The partitions of a group that have share state; none for a group that is not there. Raises
        CoordinatorError.
        """
        state = self._read(group_id, lambda groups: groups.committed_state(group_id))
        return {topic_id: sorted(topic.partitions) for topic_id, topic in state.initialized.items()}

    def summaries(
        self, group_id: str, partitions: Partitions, done: Callable[[dict[Cell, Summary]], None]
    ) -> None:
        """Where share partitions stand."""
        if partitions:
            self._persister().summaries(group_id, partitions, done)
        else:
            done({})

    def latest_offset(self, topic: str, partition: int) -> int | ErrorCode:
        """See `LatestOffsets`."""
        return self._latest.latest(topic, partition)

    def _initialize(self, todo: Initialize, done: Callable[[Errors], None]) -> None:
        """Have share state made, note what came of it, then tell."""
        if not todo.start_offsets:
            done({})
            return

        def answered(errors: Errors) -> None:
            good: dict[bytes, list[int]] = {}
            bad: dict[bytes, list[int]] = {}
            for (topic_id, index), error in errors.items():
                (good if error is ErrorCode.NONE else bad).setdefault(topic_id, []).append(index)
            if bad:
                worst = next(error for error in errors.values() if error is not ErrorCode.NONE)
                _log.warning(
                    "Share group %s: share partitions were not initialized: %s", todo.group_id, worst.message
                )

            def noted(error: ErrorCode, _: None) -> None:
                if error is not ErrorCode.NONE:
                    _log.warning(
                        "Share group %s: initialized share partitions were not noted: %s",
                        todo.group_id,
                        error.message,
                    )
                done(errors)

            self._write(
                todo.group_id, lambda groups: settle_initialized(groups, todo.group_id, good, bad), noted
            )

        self._persister().initialize(todo.group_id, todo.start_offsets, todo.state_epoch, answered)

    def _write(
        self,
        group_id: str,
        operation: Callable[[ShareGroups], Result[R]],
        done: Callable[[ErrorCode, R | None], None],
    ) -> None:
        if not group_id:
            done(ErrorCode.INVALID_GROUP_ID, None)
            return
        try:
            partition = self._runtime.partition_for(group_id)
        except CoordinatorError as error:
            done(error.error, None)
            return
        self._runtime.write(partition, lambda shard: operation(_share(shard)), done)

    def _read(self, group_id: str, operation: Callable[[ShareGroups], R]) -> R:
        partition = self._runtime.partition_for(group_id)
        return self._runtime.read(partition, lambda shard: operation(_share(shard)))


def _share(shard: GroupShard) -> ShareGroups:
    assert shard.share is not None, "this coordinator was made without share groups"
    return shard.share


def _told(operation: Callable[[], Result[R]]) -> Result[R | Refused]:
    """A refusal is an answer, as its text has to come through."""
    try:
        result = operation()
    except Refused as refusal:
        return Result([], refusal)
    return Result(result.records, result.response)


def _by_topic(errors: Errors) -> dict[bytes, ErrorCode]:
    """One error a topic: the first of its partitions' that is one."""
    found: dict[bytes, ErrorCode] = {}
    for (topic_id, _), error in errors.items():
        if found.get(topic_id, ErrorCode.NONE) is ErrorCode.NONE:
            found[topic_id] = error
    return found

"""The group's two epochs: that of the group rises when something calls for a new assignment, that of the
target follows when the assignor has run.

The assignor is the one that most members name, the broker's default where none does. Of two that as many
name, it is the one that the broker's settings name first, so that every coordinator of the group agrees.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TypeAlias

from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.environment import Environment
from coordinator.group.consumer.errors import Refused
from coordinator.group.consumer.member import Member
from coordinator.group.consumer.subscriptions import subscribed_regexes
from coordinator.group.consumer.tables import NOT_RESOLVED
from coordinator.group.modern.assignment import NOTHING, Assignment
from coordinator.group.modern.records import GroupEpoch, TargetEpoch
from coordinator.group.modern.steps import Pace, Steps
from coordinator.group.modern.target import AssignorFailed, MemberSpec, complete, may_compute
from coordinator.group.modern.topics import existing_names, known_topics, metadata_hash
from coordinator.result import Result
from protocol.errors import ErrorCode

Computed: TypeAlias = tuple[dict[str, MemberSpec], dict[str, Assignment]]
"""What an assignor was told, and what it said."""

_log = logging.getLogger(__name__)


def update_epoch(env: Environment, change: GroupChange, *, bump: bool) -> None:
    """Look at the subscribed topics again, where something has changed, and let the group epoch rise where
    `bump` says so or the topics are not what they were.
    """
    version = env.topics.version()
    group_id = change.group_id
    if not bump and env.seen.get(group_id) == version:
        return
    topics_hash = metadata_hash(env.topics, _existing(env, change))
    if bump or topics_hash != change.epoch.metadata_hash:
        change.put_epoch(GroupEpoch(change.epoch.epoch + 1, topics_hash))
    env.seen[group_id] = version

    def undo() -> None:
        env.seen.pop(group_id, None)

    change.undos.append(undo)


def preferred_assignor(env: Environment, members: Iterable[Member]) -> str:
    """The assignor that most of the members ask for; the default, which comes first, where none does."""
    votes = dict.fromkeys(env.settings.assignors, 0)
    for member in members:
        if member.assignor is not None and member.assignor in votes:
            votes[member.assignor] += 1
    return max(votes, key=votes.__getitem__)


def update_target(env: Environment, change: GroupChange) -> None:
    """Have the members assigned anew, when the group epoch is ahead and the last time is long enough ago. For
    a large group that goes on beside requests; who asks meanwhile goes on with the last target.

    Raises Refused (UNKNOWN_SERVER_ERROR) where the assignor fails.
    """
    group_id, epoch = change.group_id, change.epoch.epoch
    if change.target_epoch.epoch >= epoch or env.assigning.goes_on(group_id):
        return
    interval_ms = env.settings.group_config(group_id, "consumer.assignment.interval.ms")
    if not may_compute(change.target_epoch, interval_ms, env.now_ms()):
        return

    def late(computed: Computed) -> None:
        _store_target(env, group_id, epoch, computed)

    computed = env.assigning.begin(group_id, _compute(env, change), late)
    if computed is None:
        change.undos.append(lambda: env.assigning.forget(group_id))
    else:
        specs, assigned = computed
        targets = complete(assigned, specs)
        if env.tables.may_assign(group_id, targets):
            change.put_targets(TargetEpoch(epoch, env.now_ms()), targets)


def _compute(env: Environment, change: GroupChange) -> Steps[Computed]:
    """By the group as it is at the first step: it may change between the others."""
    topics = known_topics(env.topics, _existing(env, change))
    partitions = {topic_id: range(topic.partition_count) for topic_id, topic in topics.items()}
    by_name = {topic.name: topic_id for topic_id, topic in topics.items()}
    members, targets, regexes = dict(change.members), dict(change.targets), dict(change.regexes)
    name, epoch = preferred_assignor(env, members.values()), change.epoch.epoch
    assignor = env.settings.assignors[name]
    names, pace = frozenset(by_name), Pace()
    ids: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}
    specs: dict[str, MemberSpec] = {}
    for member_id, member in members.items():
        subscription = (member.topics, member.regex)
        topic_ids = ids.get(subscription)
        if topic_ids is None:
            its = names.intersection(member.topics)
            if member.regex:
                its |= names & regexes.get(member.regex, NOT_RESOLVED).topics
            topic_ids = ids[subscription] = frozenset(map(by_name.__getitem__, its))
            if pace.over(len(member.topics) + len(its)):
                yield
        target = targets.get(member_id, NOTHING)
        specs[member_id] = MemberSpec(topic_ids, target, member.instance_id, member.rack)
    try:
        assigned = yield from assignor.assign(specs, partitions)
    except AssignorFailed as error:
        text = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        _log.error("Group %s: %s", change.group_id, text)
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error
    return specs, assigned


def _store_target(env: Environment, group_id: str, epoch: int, computed: Computed) -> None:
    """What was computed beside requests becomes the target of that epoch, for the members there are now. Who
    came since has nothing yet, and raised the epoch; a static member that came back under another id has
    what its old id was given.
    """

    def operation() -> Result[None]:
        change = GroupChange(env.tables, group_id)
        if change.target_epoch.epoch < epoch <= change.epoch.epoch:
            specs, assigned = computed
            static = {spec.instance_id: member_id for member_id, spec in specs.items()}
            targets = {
                member_id: assigned.get(
                    member_id if member.instance_id is None else static.get(member.instance_id, member_id),
                    NOTHING,
                )
                for member_id, member in change.members.items()
            }
            if env.tables.may_assign(group_id, targets):
                change.put_targets(TargetEpoch(epoch, env.now_ms()), targets)
        return change.result(None)

    def decided(error: ErrorCode, _: None) -> None:
        if error is not ErrorCode.NONE:
            _log.warning("Group %s: its target assignment was not written: %s", group_id, error.message)

    env.parts.context.write(operation, decided)


def _existing(env: Environment, change: GroupChange) -> set[str]:
    """The topics that any member subscribes to, as far as they exist."""
    members, regexes = change.members.values(), change.regexes
    subscriptions: list[Iterable[str]] = list(dict.fromkeys(member.topics for member in members))
    subscriptions += [regexes.get(regex, NOT_RESOLVED).topics for regex in subscribed_regexes(members)]
    return existing_names(env.topics, subscriptions)

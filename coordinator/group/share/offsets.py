"""What is done to the share state of a group as a whole: partitions got their state or did not, offsets are
altered or deleted, the group itself goes. Each step looks at live state and returns records.

Altering and deleting are only for groups without members. Altering makes a group that is not there yet: its
state partitions alone are enough for it to exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.group.share.groups import ShareGroups
from coordinator.group.share.ports import StartOffsets
from coordinator.group.share.state_partitions import (
    Partitions,
    StatePartitions,
    StateTopic,
    begin,
    deleted,
    deleting,
    deleting_all,
    failed,
    state_record,
    succeeded,
)
from coordinator.ports import TopicFacts
from coordinator.result import Result
from protocol.errors import ErrorCode

NOTHING_TO_DELETE = "There is no offset information to delete."


class Refused(Exception):
    """A request as a whole is refused; `text` tells the client why."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.error = error
        self.text = text


@dataclass(slots=True)
class Altering:
    """State that is to begin anew; what exists of the topics that were asked for, in their order."""

    state_epoch: int
    topics: dict[str, TopicFacts]
    start_offsets: StartOffsets


@dataclass(slots=True)
class Deleting:
    """State that is to be removed, and topics whose offsets cannot be: name to error and message."""

    names: dict[bytes, str]
    partitions: Partitions
    refused: dict[str, tuple[ErrorCode, str]]


def settle_initialized(groups: ShareGroups, group_id: str, good: Partitions, bad: Partitions) -> Result[None]:
    """The share coordinator has answered for partitions that were to be initialized."""
    before = groups.states.get(group_id, "")
    if before is None:
        return Result([], None)  # the group was deleted meanwhile
    after = failed(succeeded(before, good, groups.parts.topics.name_of), bad)
    return _changed(group_id, before, after)


def begin_alter(
    groups: ShareGroups, group_id: str, wanted: Mapping[str, Mapping[int, int]]
) -> Result[Altering]:
    """AlterShareGroupOffsets: partitions of topics that exist begin anew at the offsets given.

    Raises Refused: GROUP_ID_NOT_FOUND where another protocol has the group, NON_EMPTY_GROUP.
    """
    if groups.parts.is_taken(group_id):
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    _refuse_members(groups, group_id)
    topics: dict[str, TopicFacts] = {}
    start_offsets: dict[bytes, dict[int, int]] = {}
    new: dict[bytes, StateTopic] = {}
    for name, offsets in wanted.items():
        facts = groups.parts.topics.topic(name)
        if facts is None:
            continue
        topics[name] = facts
        known = {index: offset for index, offset in offsets.items() if 0 <= index < facts.partition_count}
        if known:
            start_offsets[facts.topic_id] = known
            new[facts.topic_id] = StateTopic(name, frozenset(known))
    plan = Altering(groups.tables.epoch(group_id).epoch, topics, start_offsets)
    if not new:
        return Result([], plan)
    return Result([state_record(group_id, begin(groups.state(group_id), new))], plan)


def begin_delete_offsets(groups: ShareGroups, group_id: str, names: Iterable[str]) -> Result[Deleting]:
    """DeleteShareGroupOffsets: topics go over to deleting. Raises Refused: GROUP_ID_NOT_FOUND,
    NON_EMPTY_GROUP.
    """
    _refuse_absent(groups, group_id)
    _refuse_members(groups, group_id)
    before = groups.states.get(group_id, "")
    plan = Deleting({}, {}, {})
    if before is None:
        return Result([], plan)
    partitions: dict[bytes, list[int]] = {}
    for name in names:
        facts = groups.parts.topics.topic(name)
        if facts is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            plan.refused[name] = (error, error.message)
        elif facts.topic_id in before.initialized:
            partitions[facts.topic_id] = sorted(before.initialized[facts.topic_id].partitions)
            plan.names[facts.topic_id] = name
        elif facts.topic_id in before.deleting:
            partitions[facts.topic_id] = list(range(facts.partition_count))
            plan.names[facts.topic_id] = name
        else:
            plan.refused[name] = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOTHING_TO_DELETE)
    plan.partitions = partitions
    return Result(_changed(group_id, before, deleting(before, plan.names)).records, plan)


def end_delete_offsets(groups: ShareGroups, group_id: str, topic_ids: Iterable[bytes]) -> Result[None]:
    """The share coordinator has removed the state of topics."""
    before = groups.states.get(group_id, "")
    if before is None:
        return Result([], None)
    return _changed(group_id, before, deleted(before, topic_ids))


def begin_delete_group(groups: ShareGroups, group_id: str) -> Result[Partitions]:
    """DeleteGroups, the first half: all topics go over to deleting. Those that do not exist any more have no
    state. Raises Refused: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    _refuse_absent(groups, group_id)
    _refuse_members(groups, group_id)
    before = groups.states.get(group_id, "")
    if before is None:
        return Result([], {})
    partitions: dict[bytes, set[int]] = {}
    for topics in (before.initialized, before.initializing):
        for topic_id, topic in topics.items():
            partitions.setdefault(topic_id, set()).update(topic.partitions)
    for topic_id, name in before.deleting.items():
        facts = groups.parts.topics.topic(name)
        if facts is not None and facts.topic_id == topic_id:
            partitions.setdefault(topic_id, set()).update(range(facts.partition_count))
    records = _changed(group_id, before, deleting_all(before)).records
    return Result(records, {topic_id: sorted(each) for topic_id, each in partitions.items()})


def _refuse_absent(groups: ShareGroups, group_id: str) -> None:
    if not groups.exists(group_id):
        other = groups.parts.is_taken(group_id)
        text = f"Group {group_id} is not a share group." if other else f"Group {group_id} not found."
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, text)


def _refuse_members(groups: ShareGroups, group_id: str) -> None:
    if not groups.is_empty(group_id):
        raise Refused(ErrorCode.NON_EMPTY_GROUP, ErrorCode.NON_EMPTY_GROUP.message)


def _changed(group_id: str, before: StatePartitions, after: StatePartitions) -> Result[None]:
    return Result([] if after == before else [state_record(group_id, after)], None)

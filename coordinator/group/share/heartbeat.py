"""ShareGroupHeartbeat on one shard: joining, staying, leaving, and what that changes.

One heartbeat writes, in this order and as one batch: the member (record 10), the group's epoch (11), new
targets (13, 12), the member's current assignment (14), partitions whose share state is to be made (15).

A group's epoch rises when a subscription changes, when subscribed topics change, and when partitions have got
their share state; then targets are made anew, at most once in group.share.assignment.interval.ms. A heartbeat
that finds a group as it was left settled costs a few look-ups.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.group.modern.assignment import Assignment, to_wire
from coordinator.group.modern.records import SHARE, GroupEpoch, TargetEpoch, group_epoch_record
from coordinator.group.modern.target import may_compute, target_records
from coordinator.group.modern.topics import existing_names, known_topics, metadata_hash
from coordinator.group.room import NO_MEMORY
from coordinator.group.share.assign import compute_targets, store_targets
from coordinator.group.share.groups import ShareGroups
from coordinator.group.share.members import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ShareCurrent,
    ShareMember,
    current_record,
    member_record,
)
from coordinator.group.share.ports import NOT_KNOWN, StartOffsets
from coordinator.group.share.state_partitions import StatePartitions, StateTopic, begin, merged, state_record
from coordinator.result import CoordinatorRecord, Result
from protocol import messages as m
from protocol.errors import ErrorCode

FROM_THE_START = 0
_Response = m.ShareGroupHeartbeatResponse


@dataclass(slots=True)
class Heartbeat:
    """A valid request, and who sent it. None stands for "as before"."""

    group_id: str
    member_id: str
    epoch: int
    rack_id: str | None
    topics: frozenset[str] | None
    client_id: str
    client_host: str


@dataclass(slots=True)
class Initialize:
    """Share state that is to be made, once the records that say so are committed."""

    group_id: str
    state_epoch: int
    start_offsets: StartOffsets


@dataclass(slots=True)
class Answer:
    """What the client hears, and what is to be done after that."""

    response: _Response
    initialize: Initialize | None = None


def refused(error: ErrorCode, message: str | None = None) -> _Response:
    """An answer with an error."""
    return _Response(error_code=error, error_message=error.message if message is None else message)


def refusal(request: m.ShareGroupHeartbeatRequest) -> _Response | None:
    """What a request is refused with by itself; None: nothing is wrong with it."""
    message = None
    if not request.member_id.strip():
        message = "MemberId can't be empty."
    elif not request.group_id.strip():
        message = "GroupId can't be empty."
    elif request.rack_id is not None and not request.rack_id.strip():
        message = "RackId can't be empty."
    elif request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        message = "SubscribedTopicNames must be set in first request."
    elif request.member_epoch < LEAVE_EPOCH:
        message = "MemberEpoch is invalid."
    return None if message is None else refused(ErrorCode.INVALID_REQUEST, message)


def heartbeat(groups: ShareGroups, ask: Heartbeat) -> Result[Answer]:
    """Handle a heartbeat by live state. Errors are answers, too."""
    if ask.epoch == LEAVE_EPOCH:
        return _leave(groups, ask)
    if (refused_with := _refusal(groups, ask)) is not None:
        return Result([], Answer(refused_with))
    return _Round(groups, ask).run()


def _refusal(groups: ShareGroups, ask: Heartbeat) -> _Response | None:
    group_id, tables = ask.group_id, groups.tables
    if groups.parts.is_taken(group_id):
        return refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    if ask.epoch != JOIN_EPOCH and not groups.exists(group_id):
        return refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    members = tables.members.row(group_id)
    if len(members) >= groups.settings.max_size and ask.member_id not in members:
        return refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {groups.settings.max_size} members.",
        )
    known = members.get(ask.member_id)
    if ask.topics is not None and not tables.has_room(known, _member(ask, known)):
        return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_MEMORY)
    if ask.epoch == JOIN_EPOCH:
        return None
    if known is None:
        return _no_member(ask)
    return _fenced(ask.epoch, groups.current(group_id, ask.member_id))


def _member(ask: Heartbeat, known: ShareMember | None) -> ShareMember:
    """The member with what it says now; what it leaves out stays."""
    return ShareMember(
        ask.member_id,
        ask.rack_id if ask.rack_id is not None or known is None else known.rack_id,
        ask.client_id,
        ask.client_host,
        ask.topics if ask.topics is not None else _topics_of(known),
    )


def _no_member(ask: Heartbeat) -> _Response:
    message = f"Member {ask.member_id} is not a member of group {ask.group_id}."
    return refused(ErrorCode.UNKNOWN_MEMBER_ID, message)


def _fenced(epoch: int, current: ShareCurrent) -> _Response | None:
    if epoch > current.epoch:
        return refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({current.epoch}). The member must abandon all its partitions and rejoin.",
        )
    if epoch < current.epoch and epoch != current.previous_epoch:
        return refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({current.epoch}), and it does not match the previous member epoch "
            f"({current.previous_epoch}). The member must abandon all its partitions and rejoin.",
        )
    return None


def _leave(groups: ShareGroups, ask: Heartbeat) -> Result[Answer]:
    if groups.parts.is_taken(ask.group_id):
        response = refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {ask.group_id} is not a share group.")
        return Result([], Answer(response))
    if not groups.exists(ask.group_id):
        response = refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {ask.group_id} not found.")
        return Result([], Answer(response))
    if groups.tables.members.get(ask.group_id, ask.member_id) is None:
        return Result([], Answer(_no_member(ask)))
    response = _Response(member_id=ask.member_id, member_epoch=LEAVE_EPOCH)
    return Result(groups.member_gone(ask.group_id, ask.member_id), Answer(response))


class _Round:
    """One heartbeat of a member that is let in: what there is, and the records that come to it."""

    def __init__(self, groups: ShareGroups, ask: Heartbeat) -> None:
        self.groups, self.ask, self.group_id = groups, ask, ask.group_id
        self.tables, self.topics = groups.tables, groups.parts.topics
        self.records: list[CoordinatorRecord] = []
        known = self.tables.members.get(ask.group_id, ask.member_id)
        self.member = _member(ask, known)
        self.is_changed = known != self.member
        self.is_subscription_changed = self.member.topics != _topics_of(known)
        self.epoch = self.tables.epoch(self.group_id)
        self.target_epoch = self.tables.target_epoch(self.group_id)
        self.state = groups.state(self.group_id)
        self.topics_version = self.topics.version()

    def run(self) -> Result[Answer]:
        """Records and answer."""
        groups, ask, group_id = self.groups, self.ask, self.group_id
        is_settled = not self.is_changed and _same(groups.settled.get(group_id), self._standing())
        initialize = None
        if is_settled:
            target = self.tables.target(group_id, ask.member_id)
        else:
            if self.is_changed:
                self.records.append(member_record(group_id, self.member))
            self._move_epoch()
            target = self._make_targets()
        before = groups.current(group_id, ask.member_id)
        current = self._reconcile(before, target)
        if not is_settled:
            initialize = self._initialize()
            if (
                not self.records
                and not self.state.initializing
                and self.epoch.epoch == self.target_epoch.epoch
            ):
                groups.settled[group_id] = self._standing()
        groups.renew(group_id, ask.member_id)
        is_told = ask.epoch == JOIN_EPOCH or ask.topics is not None or current.assigned != before.assigned
        response = _Response(
            member_id=ask.member_id,
            member_epoch=current.epoch,
            heartbeat_interval_ms=groups.settings.heartbeat_interval_ms(group_id),
            assignment=_assignment(current.assigned) if is_told else None,
        )
        return Result(self.records, Answer(response, initialize), undo=self._undo)

    def _standing(self) -> tuple[object, ...]:
        return (self.epoch, self.target_epoch, self.state, self.topics_version)

    def _undo(self) -> None:
        """The records are not in the log: look at the topics again."""
        self.groups.seen_topics.pop(self.group_id, None)
        self.groups.settled.pop(self.group_id, None)
        self.groups.assigning.forget(self.group_id)

    def _members(self) -> dict[str, ShareMember]:
        return {**self.tables.members.row(self.group_id), self.member.member_id: self.member}

    def _names(self) -> list[str]:
        """Of the topics that members subscribe to and that exist."""
        members = self._members().values()
        return sorted(existing_names(self.topics, [member.topics for member in members]))

    def _move_epoch(self) -> None:
        groups, group_id = self.groups, self.group_id
        rises = self.is_subscription_changed
        if self.target_epoch.epoch >= self.epoch.epoch:
            rises = rises or self._has_news_of_state()
        if not rises and groups.seen_topics.get(group_id) == self.topics_version:
            return
        groups.seen_topics[group_id] = self.topics_version
        new_hash = metadata_hash(self.topics, self._names())
        if rises or new_hash != self.epoch.metadata_hash:
            self.epoch = GroupEpoch(self.epoch.epoch + 1, new_hash)
            self.records.append(group_epoch_record(SHARE, group_id, self.epoch))

    def _has_news_of_state(self) -> bool:
        """Whether partitions have got their share state that no target has."""
        named = frozenset(topic.name for topic in self.state.initialized.values())
        subscribed: set[str] = set()
        for member in self.tables.members.row(self.group_id).values():
            subscribed |= named & member.topics
        if not subscribed:
            return False
        targets: dict[bytes, frozenset[int]] = {}
        for target in self.tables.targets.row(self.group_id).values():
            for topic_id, partitions in target.items():
                targets[topic_id] = targets.get(topic_id, frozenset()) | partitions
        return any(
            topic.name in subscribed and targets.get(topic_id) != topic.partitions
            for topic_id, topic in self.state.initialized.items()
        )

    def _make_targets(self) -> Assignment:
        """The member's target; made anew where that is due."""
        groups, group_id, epoch = self.groups, self.group_id, self.epoch.epoch
        target = self.tables.target(group_id, self.member.member_id)
        if epoch <= self.target_epoch.epoch or groups.assigning.goes_on(group_id):
            return target
        now_ms = groups.parts.clock.now_ms()
        if not may_compute(self.target_epoch, groups.settings.assignment_interval_ms(group_id), now_ms):
            return target
        after = groups.assigning.begin(
            group_id,
            compute_targets(groups, group_id, self._members(), self._names(), self.state),
            lambda assigned: store_targets(groups, group_id, epoch, assigned),
        )
        if after is None or not self.tables.may_assign(group_id, after):
            return target
        self.target_epoch = TargetEpoch(epoch, now_ms)
        before = self.tables.targets.row(group_id)
        self.records += target_records(SHARE, group_id, self.target_epoch, before, after)
        return after[self.member.member_id]

    def _reconcile(self, before: ShareCurrent, target: Assignment) -> ShareCurrent:
        """Give the member its target at once, as far as it still subscribes to the topics."""
        if before.epoch == self.target_epoch.epoch and not self.is_subscription_changed:
            return before
        assigned = {
            topic_id: partitions
            for topic_id, partitions in target.items()
            if self.topics.name_of(topic_id) in self.member.topics
        }
        if before.epoch == self.target_epoch.epoch:
            current = ShareCurrent(before.epoch, before.previous_epoch, assigned)
        else:
            current = ShareCurrent(self.target_epoch.epoch, before.epoch, assigned)
        if current != before:
            self.records.append(current_record(self.group_id, self.member.member_id, current))
        return current

    def _initialize(self) -> Initialize | None:
        """Begin to make share state for subscribed partitions that have none.

        A topic that is new to the group begins where share.auto.offset.reset says; partitions that come to a
        topic begin at 0, so that nothing in them is missed.
        """
        is_slow = self._now_ms() - self.state.since_ms >= self.groups.settings.initialize_retry_ms
        under_way = {} if is_slow else self.state.initializing
        known = merged(self.state.initialized, under_way)
        new: dict[bytes, StateTopic] = {}
        for topic_id, topic in known_topics(self.topics, self._names()).items():
            has = known[topic_id].partitions if topic_id in known else frozenset()
            if len(has) < topic.partition_count:
                new[topic_id] = StateTopic(topic.name, frozenset(range(topic.partition_count)) - has)
        if not new:
            return None
        self.state = begin(self.state, new)
        self.records.append(state_record(self.group_id, self.state))
        return Initialize(
            self.group_id, self.epoch.epoch, _start_offsets(self.groups.state(self.group_id), new)
        )

    def _now_ms(self) -> int:
        return self.groups.parts.clock.now_ms()


def _start_offsets(before: StatePartitions, new: dict[bytes, StateTopic]) -> StartOffsets:
    known = {**before.initialized, **before.initializing}
    return {
        topic_id: dict.fromkeys(sorted(topic.partitions), FROM_THE_START if topic_id in known else NOT_KNOWN)
        for topic_id, topic in new.items()
    }


def _topics_of(member: ShareMember | None) -> frozenset[str]:
    return frozenset() if member is None else member.topics


def _same(one: tuple[object, ...] | None, other: tuple[object, ...]) -> bool:
    """The very same objects: what has been replayed since is another one."""
    return one is not None and all(a is b for a, b in zip(one, other, strict=True))


def _assignment(assigned: Assignment) -> _Response.Assignment:
    return _Response.Assignment(topic_partitions=to_wire(assigned, _Response.TopicPartitions))

"""The share groups of one partition of __consumer_offsets: their tables, sessions, and what is shown of them.

State changes by records alone. A group exists once it has an epoch (record 11) or state partitions (record
15; altering offsets makes a group that nobody has joined yet). Requests that change a group are in
`heartbeat` and `offsets`; they look at live state and return records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.ports import Committer, ShardParts
from coordinator.group.modern.records import (
    SHARE,
    GroupEpoch,
    TargetEpoch,
    group_epoch_record,
    read_key,
    target_epoch_record,
)
from coordinator.group.modern.sessions import Sessions
from coordinator.group.modern.steps import LongWork
from coordinator.group.modern.tables import ONLY, ModernTables
from coordinator.group.modern.topics import existing_names, metadata_hash
from coordinator.group.offset_expiry import Expiry
from coordinator.group.share.assignor import SimpleAssignor
from coordinator.group.share.members import CODEC, NEW, ShareCurrent, ShareMember
from coordinator.group.share.ports import ShareSettings
from coordinator.group.share.state_partitions import (
    KIND,
    NONE_YET,
    StatePartitions,
    read_state,
    state_record,
    state_tombstone,
    topics_gone,
)
from coordinator.journal import JournaledTable
from coordinator.result import CoordinatorRecord, Result
from protocol import messages as m
from protocol.errors import ErrorCode

OLD_PARTITIONS_KIND: Final = 9  # early access only; has no effect
PROTOCOL_TYPE: Final = "share"
TYPE: Final = "share"
EMPTY: Final = "Empty"
STABLE: Final = "Stable"

_Described = m.ShareGroupDescribeResponse.DescribedGroup
_log = logging.getLogger(__name__)


class ShareGroups:
    """See the module. Implements `coordinator.group.modern.ports.ModernGroups`."""

    key_types = frozenset((*SHARE.common, KIND, OLD_PARTITIONS_KIND))

    def __init__(self, parts: ShardParts, settings: ShareSettings) -> None:
        self.parts = parts
        self.settings = settings
        self.assignor = SimpleAssignor()
        journal = parts.context.journal
        self.tables: ModernTables[ShareMember, ShareCurrent] = ModernTables(
            journal, CODEC, parts.unknown, parts.room, parts.assigned
        )
        self.states: JournaledTable[str, str, StatePartitions] = JournaledTable(journal)
        self.seen_topics: dict[str, object] = {}  # the version of topics that a group's epoch is up to
        self.settled: dict[str, tuple[object, ...]] = {}  # what a group was when nothing was left to do
        self.assigning = LongWork("share target", parts.context.timers)
        self.sessions = Sessions(
            PROTOCOL_TYPE, parts.context.timers, parts.clock, self._is_member, self._session_over
        )

    def state(self, group_id: str) -> StatePartitions:
        """The live state partitions of a group."""
        return self.states.get(group_id, ONLY) or NONE_YET

    def committed_state(self, group_id: str) -> StatePartitions:
        """The same by committed records."""
        return self.states.committed(group_id, ONLY) or NONE_YET

    def current(self, group_id: str, member_id: str) -> ShareCurrent:
        """What a member was last told, live."""
        return self.tables.current.get(group_id, member_id) or NEW

    def replay(self, kind: int, key: bytes, value: bytes | None) -> None:
        """Apply a record of one of `key_types`. Raises MalformedMessage."""
        if kind == KIND:
            group_id, _ = read_key(key, named=False)
            state = None if value is None else read_state(value, self.parts.clock.now_ms())
            if state is not None:
                self.states.put(group_id, ONLY, state)
            elif value is None:
                self.states.remove(group_id, ONLY)
            else:
                self.parts.unknown.see("value version", kind, int.from_bytes(value[:2], "big"))
        elif kind != OLD_PARTITIONS_KIND:
            self.tables.replay(kind, key, value)

    def on_loaded(self, now_ms: int) -> None:
        """Every member has a fresh session."""
        for group_id, member_id, _ in list(self.tables.members.items()):
            self.renew(group_id, member_id)

    def on_unloaded(self) -> None:
        """Forget sessions; the partition's timers have been taken back."""
        self.sessions.clear()

    def renew(self, group_id: str, member_id: str) -> None:
        """A sign of life."""
        self.sessions.renew(group_id, member_id, self.settings.session_timeout_ms(group_id))

    def exists(self, group_id: str) -> bool:
        """Whether there is such a share group, live."""
        return self.tables.exists(group_id) or self.states.get(group_id, ONLY) is not None

    def group_ids(self) -> list[str]:
        """All share groups, live."""
        return list(dict.fromkeys([*self.tables.group_ids(), *self.states.outer_keys()]))

    def committed_group_ids(self) -> list[str]:
        """All share groups, by committed records."""
        known = self.tables.committed_group_ids()
        return list(dict.fromkeys([*known, *self.states.committed_outer_keys()]))

    def listed(self, group_id: str) -> m.ListGroupsResponse.ListedGroup:
        """A committed group as ListGroups shows it."""
        return m.ListGroupsResponse.ListedGroup(
            group_id=group_id,
            protocol_type=PROTOCOL_TYPE,
            group_state=self._committed_state_name(group_id),
            group_type=TYPE,
        )

    def described(self, group_id: str) -> _Described:
        """A group by committed records, as ShareGroupDescribe shows it, also if there is none."""
        tables = self.tables
        if not self._exists_committed(group_id):
            other = self.parts.is_taken(group_id)
            text = f"Group {group_id} is not a share group." if other else f"Group {group_id} not found."
            return described_refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, text)
        return _Described(
            group_id=group_id,
            group_state=self._committed_state_name(group_id),
            group_epoch=tables.committed_epoch(group_id).epoch,
            assignment_epoch=tables.committed_target_epoch(group_id).epoch,
            assignor_name=self.assignor.name,
            members=[
                self._described_member(member, tables.current.committed(group_id, member.member_id) or NEW)
                for member in tables.members.committed_row(group_id).values()
            ],
        )

    def is_empty(self, group_id: str) -> bool:
        """Whether a group has no members."""
        return not self.tables.members.row(group_id)

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """Records that remove an empty group; its share state has been removed before."""
        self.seen_topics.pop(group_id, None)
        self.settled.pop(group_id, None)
        self.assigning.forget(group_id)
        *parts, group = self.tables.group_tombstones(group_id)
        return [*parts, state_tombstone(group_id), group]

    def check_commit(
        self, group_id: str, committer: Committer, version: int, *, transactional: bool
    ) -> ErrorCode:
        """A share group has no offsets of this kind."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_partition(self, group_id: str, committer: Committer, topic: str, partition: int) -> ErrorCode:
        """A share group has no offsets of this kind."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """Whoever asks hears of no offsets, as of a group that is not there."""
        return ErrorCode.NONE

    def subscribed(self, group_id: str) -> frozenset[str]:
        """Nothing that is committed here is being read."""
        return frozenset()

    def expiry(self, group_id: str) -> Expiry | None:
        """A share group stays until it is deleted."""
        return None

    def without_topics(
        self, group_ids: Iterable[str], topic_ids: frozenset[bytes]
    ) -> list[CoordinatorRecord]:
        """Records that forget deleted topics; their state goes with the share coordinator by itself."""
        records = []
        for group_id in group_ids:
            state = self.states.get(group_id, ONLY)
            if state is not None and not topic_ids.isdisjoint(state.topic_ids()):
                records.append(state_record(group_id, topics_gone(state, topic_ids)))
        return records

    def member_gone(self, group_id: str, member_id: str) -> list[CoordinatorRecord]:
        """Records that take a member out and have the others assigned anew."""
        tables = self.tables
        others = [each for each in tables.members.row(group_id).values() if each.member_id != member_id]
        names = existing_names(self.parts.topics, [each.topics for each in others])
        epoch = GroupEpoch(tables.epoch(group_id).epoch + 1, metadata_hash(self.parts.topics, names))
        records = tables.member_tombstones(group_id, member_id)
        records.append(group_epoch_record(SHARE, group_id, epoch))
        if not others:  # nobody is left for whom a target would be made
            records.append(target_epoch_record(SHARE, group_id, TargetEpoch(epoch.epoch)))
        return records

    def _exists_committed(self, group_id: str) -> bool:
        return self.tables.exists_committed(group_id) or self.states.committed(group_id, ONLY) is not None

    def _is_member(self, group_id: str, member_id: str) -> bool:
        return self.tables.members.get(group_id, member_id) is not None

    def _session_over(self, group_id: str, member_id: str) -> None:
        def operation() -> Result[None]:
            if not self._is_member(group_id, member_id):
                return Result([], None)
            _log.info("Share group %s: the session of member %s is over", group_id, member_id)
            return Result(self.member_gone(group_id, member_id), None)

        def done(error: ErrorCode, _: object) -> None:
            if error is not ErrorCode.NONE and self._is_member(group_id, member_id):
                self.renew(group_id, member_id)  # not written: the member is looked at again later

        self.parts.context.write(operation, done)

    def _committed_state_name(self, group_id: str) -> str:
        return STABLE if self.tables.members.committed_row(group_id) else EMPTY

    def _described_member(
        self, member: ShareMember, current: ShareCurrent
    ) -> m.ShareGroupDescribeResponse.Member:
        return m.ShareGroupDescribeResponse.Member(
            member_id=member.member_id,
            rack_id=member.rack_id,
            member_epoch=current.epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            assignment=self._described_assignment(current.assigned),
        )

    def _described_assignment(self, assigned: Assignment) -> m.ShareGroupDescribeResponse.Assignment:
        found = ((topic_id, self.parts.topics.name_of(topic_id)) for topic_id in sorted(assigned))
        return m.ShareGroupDescribeResponse.Assignment(
            topic_partitions=[
                m.ShareGroupDescribeResponse.TopicPartitions(
                    topic_id=topic_id, topic_name=name, partitions=sorted(assigned[topic_id])
                )
                for topic_id, name in found
                if name is not None
            ]
        )


def described_refused(group_id: str, error: ErrorCode, text: str | None) -> _Described:
    """There is nothing to show: no such group, another type, or share groups are off."""
    return _Described(
        error_code=error, error_message=text, group_id=group_id, group_state="", assignor_name=""
    )

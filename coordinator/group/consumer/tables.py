"""The replayed state of consumer groups: what `ModernTables` has, resolved regular expressions (record type
16), and what follows from them: who holds a partition, who holds an instance id, how many members have a
regular expression.

Record type 4, which early releases wrote, is passed over: the hash in type 3 has taken its place; a group
that has one gets its tombstone with the next change of epoch.

Invariant: a partition has one holder at most. Whoever has it assigned or is asked to give it up holds it.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from coordinator.group.consumer.member import Current, Member, member_size, read_current, read_member
from coordinator.group.modern.records import CONSUMER, read_key, read_value, record, tombstone
from coordinator.group.modern.tables import ONLY, Codec, ModernTables
from coordinator.group.records import UnknownRecords
from coordinator.group.room import RESOLVED_TOPIC_BYTES, Claim, Room
from coordinator.journal import Journal, JournaledTable
from coordinator.result import CoordinatorRecord
from protocol import messages as m

OLD_TOPICS_KEY_TYPE: Final = 4
REGEX_KEY_TYPE: Final = 16
KEY_TYPES: Final = frozenset((*CONSUMER.common, OLD_TOPICS_KEY_TYPE, REGEX_KEY_TYPE))

Cell: TypeAlias = tuple[bytes, int]


class Resolved(NamedTuple):
    """What a regular expression matched. `version` counts the cluster's additions of topics."""

    topics: frozenset[str]
    version: int = 0
    timestamp_ms: int = 0


NOT_RESOLVED = Resolved(frozenset())


class ConsumerTables(ModernTables[Member, Current]):
    """See the module."""

    def __init__(
        self,
        journal: Journal,
        unknown: UnknownRecords,
        room: Room | None = None,
        assigned: Room | None = None,
    ) -> None:
        codec = Codec(CONSUMER, read_member, read_current, member_size)
        super().__init__(journal, codec, unknown, room, assigned)
        self.regexes: JournaledTable[str, str, Resolved] = JournaledTable(journal)
        self.holders: JournaledTable[str, Cell, str] = JournaledTable(journal)
        self.static_ids: JournaledTable[str, str, str] = JournaledTable(journal)
        self.regex_users: JournaledTable[str, str, int] = JournaledTable(journal)
        self.old_topics: JournaledTable[str, str, bool] = JournaledTable(journal)
        self._matches: JournaledTable[str, str, Claim] = JournaledTable(journal)

    def replay(self, kind: int, key: bytes, value: bytes | None) -> None:
        """Apply a record of one of KEY_TYPES. Raises MalformedMessage."""
        if kind == REGEX_KEY_TYPE:
            self._replay_regex(key, value)
        elif kind == OLD_TOPICS_KEY_TYPE:
            group_id, _ = read_key(key, named=False)
            if value is None:
                self.old_topics.remove(group_id, ONLY)
            else:
                self.old_topics.put(group_id, ONLY, True)
        elif kind == CONSUMER.member:
            group_id, member_id = read_key(key, named=True)
            before = self.members.get(group_id, member_id)
            super().replay(kind, key, value)
            now = self.members.get(group_id, member_id)
            self._follow_static(group_id, before, now)
            self._follow_regex(
                group_id, "" if before is None else before.regex, "" if now is None else now.regex
            )
        elif kind == CONSUMER.current:
            group_id, member_id = read_key(key, named=True)
            held = self.current.get(group_id, member_id)
            super().replay(kind, key, value)
            self._follow_holder(group_id, member_id, held, self.current.get(group_id, member_id))
        else:
            super().replay(kind, key, value)

    def may_resolve(self, group_id: str, regex: str, topics: frozenset[str]) -> bool:
        """Whether there is memory for what a regular expression matches."""
        has = self._matches.get(group_id, regex)
        return self._may_grow(group_id, RESOLVED_TOPIC_BYTES * len(topics) - (0 if has is None else has.size))

    def _replay_regex(self, key: bytes, value: bytes | None) -> None:
        group_id, regex = read_key(key, named=True)
        if value is None:
            self.regexes.remove(group_id, regex)
            self._matches.remove(group_id, regex)
            return
        read: m.ConsumerGroupRegularExpressionValue | None = read_value(
            m.ConsumerGroupRegularExpressionValue, value
        )
        resolved = None if read is None else Resolved(frozenset(read.topics), read.version, read.timestamp)
        self._set(self.regexes, group_id, regex, resolved, REGEX_KEY_TYPE, value)
        if resolved is not None:
            claim = Claim(self._assigned_room, RESOLVED_TOPIC_BYTES * len(resolved.topics))
            self._matches.put(group_id, regex, claim)

    def _follow_static(self, group_id: str, before: Member | None, now: Member | None) -> None:
        if (
            before is not None
            and before.instance_id is not None
            and self.static_ids.get(group_id, before.instance_id) == before.member_id
        ):
            self.static_ids.remove(group_id, before.instance_id)
        if now is not None and now.instance_id is not None:
            self.static_ids.put(group_id, now.instance_id, now.member_id)

    def _follow_regex(self, group_id: str, before: str, now: str) -> None:
        if before == now:
            return
        for regex, step in ((before, -1), (now, 1)):
            count = (self.regex_users.get(group_id, regex) or 0) + step
            if regex and count:
                self.regex_users.put(group_id, regex, count)
            elif regex:
                self.regex_users.remove(group_id, regex)

    def _follow_holder(
        self, group_id: str, member_id: str, before: Current | None, now: Current | None
    ) -> None:
        held, holds = cells_of(before), cells_of(now)
        for cell in held:
            if cell not in holds and self.holders.get(group_id, cell) == member_id:
                self.holders.remove(group_id, cell)
        for cell in holds:
            if self.holders.get(group_id, cell) != member_id:
                self.holders.put(group_id, cell, member_id)

    def group_tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        """As ModernTables, with the records that only these groups have."""
        *records, last = super().group_tombstones(group_id)
        records += [tombstone(REGEX_KEY_TYPE, group_id, regex) for regex in self.regexes.row(group_id)]
        if self.old_topics.row(group_id):
            records.append(tombstone(OLD_TOPICS_KEY_TYPE, group_id))
        return [*records, last]


def cells_of(current: Current | None) -> dict[Cell, None]:
    """Every partition that a member holds."""
    if current is None:
        return {}
    return {
        (topic_id, partition): None
        for epochs in (current.assigned, current.revoking)
        for topic_id, partitions in epochs.items()
        for partition in partitions
    }


def regex_record(group_id: str, regex: str, resolved: Resolved) -> CoordinatorRecord:
    """Type 16."""
    value = m.ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return record(REGEX_KEY_TYPE, group_id, regex, value)

"""All groups of one partition of __consumer_offsets: offsets, and the state machines of classic groups.

Two kinds of state live side by side. Offsets change by replaying records, with a journal that takes back what
was not appended. A classic group changes by events and writes what has to last; it is told whether its
records were committed and mends itself. On a load its last record makes the group.

The order for each event of a group: append its records, set its timers, send its replies. An append that is
refused is told later, never inside the event that caused it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coordinator.freeing import free
from coordinator.group.classic import events as ev
from coordinator.group.classic.describe import subscribed_topics
from coordinator.group.classic.effects import Outcome, Response, SetTimer
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.heartbeat import beat
from coordinator.group.classic.machine import handle, handle_without_group
from coordinator.group.classic.snapshot import group_record as group_state
from coordinator.group.classic.snapshot import load_group, tombstone
from coordinator.group.classic.states import GroupState
from coordinator.group.consumer.groups import ConsumerGroups
from coordinator.group.consumer.settings import ConsumerSettings
from coordinator.group.modern.ports import ModernGroups, ShardParts
from coordinator.group.offset_expiry import Expiry, expired, expiry_of
from coordinator.group.offsets import METADATA_MAX_BYTES, Offsets
from coordinator.group.records import (
    GROUP_KEY_TYPE,
    OFFSET_KEYS,
    UnknownRecords,
    group_record,
    key_type,
    read_group_key,
    read_group_value,
)
from coordinator.group.room import Room, assigned_room
from coordinator.group.share.groups import ShareGroups
from coordinator.ports import Clock, TopicFacts, Topics
from coordinator.result import CoordinatorRecord
from coordinator.runtime import Context
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.entropy import Random

OFFSETS_AT_ONCE = 2000
_log = logging.getLogger(__name__)
Answer = Callable[[Response], None]


class NoTopics:
    """A cluster without topics."""

    def version(self) -> int:
        return 0

    def names_version(self) -> int:
        return 0

    def topic(self, name: str) -> TopicFacts | None:
        return None

    def name_of(self, topic_id: bytes) -> str | None:
        return None

    def names(self) -> Iterable[str]:
        return ()


@dataclass(slots=True)
class ShardSettings:
    """What the groups of a broker have in common. `make_share` makes each shard's share groups; `assigned` is
    the memory for what is assigned to members.
    """

    groups: ev.GroupSettings
    metadata_max_bytes: int = METADATA_MAX_BYTES
    topics: Topics = field(default_factory=NoTopics)
    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)
    make_share: Callable[[ShardParts], ShareGroups] | None = None
    assigned: Room = field(default_factory=assigned_room)


@dataclass(slots=True)
class Removal:
    """Records that remove groups or offsets; `undo` brings the groups back when they are not appended."""

    records: list[CoordinatorRecord]
    undo: Callable[[], None]


class GroupShard:
    """The groups that live on one partition, while this broker is their coordinator."""

    def __init__(self, context: Context, clock: Clock, random: Random, settings: ShardSettings) -> None:
        self._context = context
        self._clock = clock
        self._random = random
        self._settings = settings
        self._unknown = UnknownRecords()
        self._answers: dict[int, Answer] = {}
        self._token = 0
        self.offsets = Offsets(context.journal, self._unknown, settings.metadata_max_bytes)
        self.groups: dict[str, ClassicGroup] = {}
        self.share: ShareGroups | None = None
        if settings.make_share is not None:
            self.share = settings.make_share(self._parts(lambda: self.share, offsets_take=True))
        self.consumer = ConsumerGroups(self._parts(lambda: self.consumer), settings.consumer, self)
        self.modern: list[ModernGroups] = [self.consumer]
        if self.share is not None:
            self.modern.append(self.share)
        self._replayers = {kind: groups for groups in self.modern for kind in groups.key_types}

    def _parts(self, own: Callable[[], ModernGroups | None], *, offsets_take: bool = False) -> ShardParts:
        def is_taken(group_id: str) -> bool:
            if group_id in self.groups or (offsets_take and self.offsets.has_any(group_id)):
                return True
            return any(groups is not own() and groups.exists(group_id) for groups in self.modern)

        return ShardParts(
            self._context,
            self._clock,
            self._random,
            self._settings.topics,
            self._unknown,
            is_taken,
            self._settings.groups.room,
            self._settings.assigned,
        )

    @property
    def assigned_room(self) -> Room:
        """Of all groups of the broker; see `coordinator.group.room`."""
        return self._settings.assigned

    def modern_group(self, group_id: str) -> ModernGroups | None:
        """The groups of the newer protocol that has a group of this id, live; None where none has."""
        for groups in self.modern:
            if groups.exists(group_id):
                return groups
        return None

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """For conversions: the classic group as it is now."""
        return self.groups.get(group_id)

    def end_for_upgrade(self, group_id: str) -> Callable[[], None]:
        """For conversions: end a classic group. The call makes it anew from its last state."""
        group = self.groups[group_id]
        before = group_state(group)
        self._perform(group, handle(group, ev.Upgraded(), self._clock.now_ms()))

        def undo() -> None:
            if group_id not in self.groups and before.value is not None:
                self._replay_value(group_id, before.value)
                self.handle(group_id, ev.Loaded())

        return undo

    def begin_downgraded(self, group_id: str, rebalance: str | None) -> Callable[[], None]:
        """For conversions: a classic group is about to be made by its record. The call takes it away."""
        key = ("downgraded", group_id)
        self._context.timers.set(key, 0, lambda: self.handle(group_id, ev.Downgraded(rebalance)))

        def undo() -> None:
            self._context.timers.cancel(key)
            self.drop_group(group_id)

        return undo

    def drop_group(self, group_id: str) -> None:
        """Forget a classic group whose record is not in the log after all; what waits has to look again."""
        group = self.groups.get(group_id)
        if group is not None:
            self._perform(group, handle(group, ev.Unloaded(), self._clock.now_ms()))

    def expect_answer(self, answer: Answer) -> int:
        """The token for a request's event; `answer` is called once, perhaps before `handle` returns."""
        self._token += 1
        self._answers[self._token] = answer
        return self._token

    def handle(self, group_id: str, event: ev.Event) -> None:
        """Let something happen to a group. A request that may create one does; other news of none is old."""
        group = self.groups.get(group_id)
        now_ms = self._clock.now_ms()
        if group is None:
            if not isinstance(event, ev.Request):
                return
            refused = handle_without_group(event, self._settings.groups)
            if refused is not None:
                self._answer(refused)
                return
            group = self.groups[group_id] = ClassicGroup(group_id, self._settings.groups, self._random)
        self._perform(group, handle(group, event, now_ms))

    def begins_group(self, event: ev.Request) -> bool:
        """Whether a classic group would begin with this, if there is none."""
        return handle_without_group(event, self._settings.groups) is None

    def beat(self, group_id: str, event: ev.Heartbeat) -> ErrorCode | None:
        """A heartbeat to a classic group, answered at once; None where no such group is there."""
        group = self.groups.get(group_id)
        if group is None:
            return None
        out = Outcome()
        error = beat(group, event, self._clock.now_ms(), out)
        if out.timers:
            self._perform(group, out)
        return error

    def commit_seen(self, group: ClassicGroup, member_id: str, now_ms: int) -> None:
        """A member's commit was accepted, which is a sign of life."""
        member = group.members.get(member_id)
        if member is None or group.extend_session(member, now_ms):
            return
        out = Outcome()
        group.renew_session(member, now_ms, out)
        self._perform(group, out)

    def simple_group(self, group_id: str) -> ClassicGroup:
        """A group of offsets alone, for showing: Empty, without a protocol. It is not kept."""
        return ClassicGroup(group_id, self._settings.groups, self._random)

    def remove(self, group_id: str) -> Removal:
        """End an Empty group, or one of offsets alone, with everything that is committed or pending for it.

        Whether it may be removed is checked by the caller (`classic.describe.delete_error`).
        """
        records = self.offsets.delete_group(group_id)
        modern = self.modern_group(group_id)
        if modern is not None:
            return Removal([*records, *modern.tombstones(group_id)], lambda: None)
        group = self.groups.get(group_id)
        if group is None:
            return Removal(records, lambda: None)
        before = group_state(group)
        self._perform(group, handle(group, ev.Deleted(), self._clock.now_ms()))

        def undo() -> None:
            if group_id not in self.groups and before.value is not None:
                self._replay_value(group_id, before.value)

        gone = tombstone(group_id)
        return Removal([*records, group_record(gone.key, gone.value)], undo)

    def slices(self) -> list[list[str]]:
        """All groups, in slices that one operation may go through: few enough offsets for the loop and for
        one batch, unless a single group has more.
        """
        slices: list[list[str]] = []
        room = 0
        names = dict.fromkeys(self.offsets.groups()) | dict.fromkeys(self.groups)
        for modern in self.modern:
            names |= dict.fromkeys(modern.group_ids())
        for group_id in names:
            size = 1 + len(self.offsets.committed.row(group_id))
            if size > room:
                slices.append([])
                room = OFFSETS_AT_ONCE
            room -= size
            slices[-1].append(group_id)
        return slices

    def remove_expired(self, groups: list[str], now_ms: int, retention_ms: int) -> Removal:
        """Drop offsets that are over, and Empty groups that have none left. Not more than fit into a batch:
        what is left is over the next time, too.
        """
        out = Removal([], lambda: None)
        undos: list[Callable[[], None]] = []
        for group_id in groups:
            group, modern = self.groups.get(group_id), self.modern_group(group_id)
            if modern is not None:
                rule = modern.expiry(group_id)
            else:
                rule = Expiry() if group is None else _expiry_of(group)
            if rule is None:
                continue
            over = expired(self.offsets, group_id, rule, now_ms, retention_ms)[:OFFSETS_AT_ONCE]
            emptied = len(over) == len(self.offsets.committed.row(group_id))
            ended = modern is not None and modern.is_empty(group_id)
            if group is not None:
                ended = group.state is GroupState.EMPTY and not group.pending_ids
            if ended and emptied and not self.offsets.producers.row(group_id):
                removal = self.remove(group_id)
                out.records += removal.records
                undos.append(removal.undo)
            else:
                out.records += self.offsets.delete(group_id, over)

        def undo() -> None:
            for each in undos:
                each()

        return Removal(out.records, undo)

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """Apply a record. Raises MalformedMessage."""
        if key.startswith(OFFSET_KEYS):
            self.offsets.replay(key, value, offset, producer_id)
            return
        kind = key_type(key)
        if kind == GROUP_KEY_TYPE:
            self._replay_group(read_group_key(key), value)
        elif (groups := self._replayers.get(kind)) is not None:
            groups.replay(kind, key, value)
        else:
            self._unknown.see("key type", kind, kind)

    def replay_end_marker(self, producer_id: int, commit: bool) -> None:
        """The transaction of a producer has ended: its offsets count, or are dropped."""
        self.offsets.replay_end_marker(producer_id, commit)

    def on_loaded(self, now_ms: int) -> None:
        """Give every member a fresh session; groups that can't go on as they are rebalance."""
        self.offsets.loaded()
        for group in list(self.groups.values()):
            self._perform(group, handle(group, ev.Loaded(), now_ms))
        for groups in self.modern:
            groups.on_loaded(now_ms)

    def on_unloaded(self) -> None:
        """Refuse what is parked and forget all groups and offsets."""
        now_ms = self._clock.now_ms()
        for group_id, group in list(self.groups.items()):
            for write_id in list(group.writes):  # those whose refusal was still to be told
                self.handle(group_id, ev.RecordsFailed(write_id, ErrorCode.NOT_COORDINATOR))
            self._perform(group, handle(group, ev.Unloaded(), now_ms))
        assert not self._answers, "a request was left without an answer"
        self.groups.clear()
        for groups in self.modern:
            groups.on_unloaded()
        free(self.offsets.committed.take(), self._context.timers)

    def _replay_group(self, group_id: str, value: bytes | None) -> None:
        """The tombstone of a live group comes from `remove`, which has ended the group itself."""
        if value is None:
            if not self._context.journal.recording:
                self.groups.pop(group_id, None)
            return
        stored = read_group_value(value, self._unknown)
        if stored is not None:
            self._replay_value(group_id, stored)

    def _replay_value(self, group_id: str, stored: m.GroupMetadataValue) -> None:
        self.groups[group_id] = load_group(group_id, stored, self._settings.groups, self._random)

    def _perform(self, group: ClassicGroup, out: Outcome) -> None:
        group_id, write_id = group.group_id, out.write_id
        if out.records:

            def decided(error: ErrorCode) -> None:
                if self.groups.get(group_id) is not group:
                    return
                if error is ErrorCode.NONE:
                    self.handle(group_id, ev.RecordsCommitted(write_id))
                else:
                    self.handle(group_id, ev.RecordsFailed(write_id, error))

            self._context.append([group_record(each.key, each.value) for each in out.records], decided)
        for change in out.timers:
            key = (group_id, change.key)
            if isinstance(change, SetTimer):
                self._context.timers.set(key, change.delay_ms, self._ringing(group, change.event))
            else:
                self._context.timers.cancel(key)
        for note in out.notes:
            _log.info("Group %s: %s", group_id, note)
        if (group.state is GroupState.DEAD or group.is_vacant) and self.groups.get(group_id) is group:
            del self.groups[group_id]
        self._answer(out)

    def _ringing(self, group: ClassicGroup, event: ev.Event) -> Callable[[], None]:
        def ring() -> None:
            if self.groups.get(group.group_id) is group:
                self.handle(group.group_id, event)

        return ring

    def _answer(self, out: Outcome) -> None:
        for reply in out.replies:
            self._answers.pop(reply.token)(reply.response)


def _expiry_of(group: ClassicGroup) -> Expiry | None:
    stable = group.state is GroupState.STABLE
    return expiry_of(
        group.protocol_type,
        empty=group.state is GroupState.EMPTY,
        stable=stable,
        since_ms=group.state_since_ms,
        topics=subscribed_topics(group) if stable else None,
    )

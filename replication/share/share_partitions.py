"""The share partitions that this broker leads: loaded when a group first reads them, dropped when it must
not serve them any more, and the effects of their state machines.

An effect goes in this order: the change is shown, stored by the persister, then kept or taken back, answered,
and those who wait are woken. Errors of the persister become what the leader's clients hear: the coordinator
is away (14, 15, 16 are all 15), somebody else leads (74 and 124 are 6), or the group or topic is gone. The
last kinds mean that what is in memory may be out of date: it is dropped, and the next fetch loads it anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from protocol.errors import ErrorCode
from replication.partition import Partition
from replication.purgatory import Cancellable, Timer
from replication.share.acknowledge import Ack, AckRefused
from replication.share.ports import (
    UNINITIALIZED_START,
    Limits,
    Reset,
    SharePersister,
    ShareSettings,
    ShareState,
    StateBatch,
    StateWrite,
)
from replication.share.share_partition import Phase, SharePartition
from replication.waiting import Waiter, wake_all

if TYPE_CHECKING:
    from replication.share.runs import Transition

_log = logging.getLogger("ottla.share")

Place = tuple[bytes, int]
"""Topic id and partition index."""

Done = Callable[[ErrorCode, str | None], None]
"""Hears the error of one partition, and a text where there is one to tell."""

_AWAY = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_FENCED = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_TOLD = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_OUT_OF_DATE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, *_TOLD)


def told_error(error: ErrorCode) -> ErrorCode:
    """What a client hears of an error of the persister."""
    if error is ErrorCode.NONE or error in _TOLD:
        return error
    if error in _AWAY:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _FENCED else ErrorCode.UNKNOWN_SERVER_ERROR


class Clock(Protocol):
    """runtime's clock."""

    def now_ms(self) -> int: ...

    def monotonic(self) -> float: ...


SearchTime = Callable[[Partition, int, Callable[[int | None], None]], None]
"""Finds the first offset at or after a time (ms), off the loop; None where there is none, or on an error."""


class Entry:
    """One share partition, the log it stands on, and who waits for it. `failed` says why it did not load."""

    __slots__ = (
        "armed_ms",
        "failed",
        "group_id",
        "index",
        "leader_epoch",
        "partition",
        "share",
        "timer",
        "topic_id",
        "waiters",
    )

    def __init__(
        self, group_id: str, topic_id: bytes, index: int, partition: Partition, share: SharePartition
    ) -> None:
        self.group_id, self.topic_id, self.index = group_id, topic_id, index
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.share = share
        self.failed = ErrorCode.NONE
        self.waiters: dict[Waiter, None] = {}
        self.timer: Cancellable | None = None
        self.armed_ms = 0

    def __repr__(self) -> str:
        return f"{self.group_id}:{self.partition}"

    def wake(self) -> None:
        """Something changed: all who wait look again, in the order in which they came."""
        waiters, self.waiters = self.waiters, {}
        wake_all(waiters, self)

    @property
    def still_led(self) -> bool:
        """Whether this broker leads the partition as it did when the entry was made."""
        partition = self.partition
        return partition.is_leader and not partition.removed and partition.leader_epoch == self.leader_epoch


class SharePartitions:
    """See the module. `find` gives the replica of a place, or the reason why there is none."""

    def __init__(
        self,
        find: Callable[[bytes, int], Partition | ErrorCode],
        persister: SharePersister,
        settings: ShareSettings,
        clock: Clock,
        timer: Timer,
        search_time: SearchTime,
    ) -> None:
        self._find, self._persister, self._settings = find, persister, settings
        self._clock, self._timer, self._search_time = clock, timer, search_time
        self._entries: dict[str, dict[Place, Entry]] = {}  # by group

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._entries.values())

    def __iter__(self) -> Iterator[Entry]:
        return iter([entry for entries in self._entries.values() for entry in entries.values()])

    def now_ms(self) -> int:
        """The clock of locks."""
        return int(self._clock.monotonic() * 1000)

    # Finding and loading

    def get(self, group_id: str, place: Place) -> Entry | None:
        """What is served now; never loads."""
        return self._entries.get(group_id, {}).get(place)

    def get_or_load(self, group_id: str, place: Place) -> Entry | ErrorCode:
        """The share partition, perhaps still loading, or why it cannot be here: 3, 6, 100, 56."""
        entry = self.get(group_id, place)
        if entry is not None:
            return entry
        partition = self._find(*place)
        if not isinstance(partition, Partition):
            return partition
        if not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        share = SharePartition(lambda: self._settings.limits(group_id))
        entry = Entry(group_id, *place, partition, share)
        self._entries.setdefault(group_id, {})[place] = entry
        self._load(entry)
        return entry

    def _load(self, entry: Entry) -> None:
        def read(error: ErrorCode, state: ShareState | None) -> None:
            if entry.share.phase is not Phase.LOADING:
                return
            if error is not ErrorCode.NONE or state is None:
                self._fail(entry, told_error(error), error.message)
            elif state.start_offset == UNINITIALIZED_START:
                self._find_start(entry, state)
            else:
                self._loaded(entry, state, state.start_offset)

        self._persister.read(entry.group_id, entry.topic_id, entry.index, entry.leader_epoch, read)

    def _find_start(self, entry: Entry, state: ShareState) -> None:
        """Nothing was read yet: the group's settings say where to begin."""
        log = entry.partition.log
        reset, duration_ms = self._settings.reset(entry.group_id)
        if reset is Reset.LATEST:
            self._loaded(entry, state, log.high_watermark)
        elif reset is Reset.EARLIEST:
            self._loaded(entry, state, log.start_offset)
        else:

            def found(offset: int | None) -> None:
                if entry.share.phase is not Phase.LOADING:
                    return
                if offset is None:
                    self._fail(entry, ErrorCode.OFFSET_NOT_AVAILABLE, "no record is young enough")
                else:
                    self._loaded(entry, state, offset)

            self._search_time(entry.partition, self._clock.now_ms() - duration_ms, found)

    def _loaded(self, entry: Entry, state: ShareState, start_offset: int) -> None:
        try:
            entry.share.load(state, start_offset)
        except ValueError as wrong:
            self._fail(entry, ErrorCode.UNKNOWN_SERVER_ERROR, f"its stored state cannot be right: {wrong}")
            return
        entry.wake()

    def _fail(self, entry: Entry, error: ErrorCode, why: str) -> None:
        _log.warning("Share partition %s is not served: %s", entry, why)
        entry.failed = error
        self.drop(entry)

    # Dropping

    def drop(self, entry: Entry) -> None:
        """Serve it no longer; who waits looks again. Its stored state stays."""
        entries = self._entries.get(entry.group_id, {})
        place = (entry.topic_id, entry.index)
        if entries.get(place) is entry:
            del entries[place]
            if not entries:
                del self._entries[entry.group_id]
        entry.share.fence()
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        entry.wake()

    def drop_group(self, group_id: str) -> None:
        """No member of the group has a session here any more."""
        for entry in list(self._entries.get(group_id, {}).values()):
            self.drop(entry)

    def follow_leadership(self) -> None:
        """Roles or topics changed: drop what this broker leads no more, or leads anew."""
        for entry in self:
            if not entry.still_led:
                self.drop(entry)

    def close(self) -> None:
        """Drop everything."""
        for entry in self:
            self.drop(entry)

    # What members say

    def acknowledge(self, group_id: str, member: str, place: Place, acks: Sequence[Ack], done: Done) -> None:
        """Apply and store; `done` hears what became of it, perhaps at once. 3: it is not served here."""
        entry = self.get(group_id, place)
        if entry is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            done(unknown, unknown.message)
            return
        may_renew = self._settings.renew_allowed(group_id)
        try:
            transition = entry.share.acknowledge(member, acks, self.now_ms(), may_renew)
        except AckRefused as refused:
            done(refused.error, refused.message)
            return
        self._keep(entry, transition, done)
        self.arm(entry)

    def release(self, group_id: str, member: str, place: Place, done: Done) -> None:
        """All that a member holds there is free again."""
        entry = self.get(group_id, place)
        if entry is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            done(unknown, unknown.message)
            return
        self._keep(entry, entry.share.release(member), done)

    def _keep(self, entry: Entry, transition: Transition, done: Done) -> None:
        batches = entry.share.state_batches(transition)
        if not batches:
            moved = bool(transition.runs) and entry.share.commit(transition)
            done(ErrorCode.NONE, None)
            if moved:
                entry.wake()
            return

        def kept(error: ErrorCode) -> None:
            if error is ErrorCode.NONE:
                entry.share.commit(transition)
                done(ErrorCode.NONE, None)
            else:
                entry.share.roll_back(transition, self.now_ms())
                told = told_error(error)
                done(told, error.message)
                if told in _OUT_OF_DATE:
                    _log.info("Share partition %s is loaded anew: %s", entry, error.message)
                    self.drop(entry)
                    return
                self.arm(entry)
            entry.wake()

        self._write(entry, batches, kept)

    def _write(self, entry: Entry, batches: Sequence[StateBatch], kept: Callable[[ErrorCode], None]) -> None:
        share = entry.share
        self._persister.write(
            StateWrite(
                entry.group_id,
                entry.topic_id,
                entry.index,
                share.state_epoch,
                entry.leader_epoch,
                share.window.start_offset,
                share.window.complete_count,
                batches,
            ),
            kept,
        )

    # Time

    def limits(self, group_id: str) -> Limits:
        """The group's limits as they are now."""
        return self._settings.limits(group_id)

    def arm(self, entry: Entry) -> None:
        """Something of the entry was acquired: see that its locks run out."""
        deadline_ms = entry.share.next_deadline_ms()
        if deadline_ms is None or entry.share.phase is not Phase.ACTIVE:
            return
        if entry.timer is not None:
            if entry.armed_ms <= deadline_ms:
                return
            entry.timer.cancel()
        entry.armed_ms = deadline_ms
        entry.timer = self._timer.add(max(deadline_ms - self.now_ms(), 0), lambda: self._expire(entry))

    def _expire(self, entry: Entry) -> None:
        entry.timer = None
        if entry.share.phase is not Phase.ACTIVE:
            return
        batches = entry.share.expire(self.now_ms())
        self.arm(entry)
        if not batches:
            return

        def kept(error: ErrorCode) -> None:
            if error is not ErrorCode.NONE:
                _log.warning("Locks of %s ran out, which is not stored: %s", entry, error.message)
            if entry.share.phase is Phase.ACTIVE:
                entry.share.advance()
                entry.wake()

        self._write(entry, batches, kept)
        entry.wake()

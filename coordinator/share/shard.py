"""The share partitions of one partition of `__share_group_state`.

State changes by records alone; operations look at live state, and what they answer waits for the records
before it. Refusals are answers like others, as each has Kafka's text for the share partition that was asked
about. They come in Kafka's order: numbers that can't be, a share partition that was not initialized, leader
epoch, state epoch, a topic that is not there.

A write becomes an update record, or a snapshot when enough updates lie behind the last one. A read whose
leader epoch is another than the highest known writes it down, so that the leader before is fenced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from coordinator.freeing import free
from coordinator.journal import JournaledTable
from coordinator.ports import Clock
from coordinator.result import CoordinatorRecord, Result
from coordinator.runtime import Context
from coordinator.share import records
from coordinator.share.batches import NO_START, StateBatch, merged
from coordinator.share.records import ShareKey, snapshot_record, tombstone, update_record
from coordinator.share.state import NOT_KNOWN, ShareState, after_snapshot, after_update
from protocol.errors import ErrorCode

UPDATES_PER_SNAPSHOT: Final = 500
"""Default of share.coordinator.snapshot.update.records.per.snapshot."""
BYTES_AT_ONCE: Final = 256 * 1024
"""How much one batch of the coordinator's own snapshots and tombstones holds, about."""

NEGATIVE_PARTITION: Final = "The partition id cannot be a negative number."
NEGATIVE_LEADER_EPOCH: Final = "The leader epoch cannot be a negative number."
NEGATIVE_STATE_EPOCH: Final = "The state epoch cannot be a negative number."
WRITE_UNINITIALIZED: Final = "Write operation on uninitialized share partition not allowed."
READ_UNINITIALIZED: Final = "Read operation on uninitialized share partition not allowed."
BACKWARDS: Final = "A state batch ends before it begins."

_log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What an operation ends with. `state` is there for reads and summaries that went well."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    state: ShareState | None = None


@dataclass(slots=True)
class StateWrite:
    """What WriteShareGroupState asks for; `complete_count` is -1 where the request does not say."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete_count: int
    batches: Sequence[StateBatch]


@dataclass(slots=True)
class ShardSettings:
    """What all shards have in common. `partition_count` tells how many partitions a topic has; 0: none."""

    partition_count: Callable[[bytes], int]
    updates_per_snapshot: int = UPDATES_PER_SNAPSHOT


class ShareShard:
    """See the module."""

    def __init__(self, context: Context, clock: Clock, settings: ShardSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._timers = context.timers
        self._states: JournaledTable[str, tuple[bytes, int], ShareState] = JournaledTable(context.journal)
        self._ended: JournaledTable[str, str, int] = JournaledTable(context.journal)
        self._unknown: set[tuple[int, int]] = set()

    def state(self, key: ShareKey) -> ShareState | None:
        """What is kept of a share partition, live."""
        return self._states.get(key.group_id, key[1:])

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> Result[Answer]:
        """Begin a share partition, or begin it anew at an epoch that is not lower."""
        before = self.state(key)
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if state_epoch < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
        if before is not None and before.fence_state_epoch > state_epoch:
            return _refused(ErrorCode.FENCED_STATE_EPOCH)
        if not self._is_topic_known(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        now_ms = self._clock.now_ms()
        state = ShareState(
            snapshot_epoch=0 if before is None else before.snapshot_epoch + 1,
            state_epoch=state_epoch,
            start_offset=start_offset,
            complete_count=NOT_KNOWN if start_offset == NO_START else 0,
            create_ms=now_ms,
            write_ms=now_ms,
        )
        return Result([snapshot_record(key, state)], Answer())

    def read(self, key: ShareKey, leader_epoch: int) -> Result[Answer]:
        """The state; a new leader epoch is written down."""
        state = self.state(key)
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if leader_epoch < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
        if state is None:
            return _refused(ErrorCode.INVALID_REQUEST, READ_UNINITIALIZED)
        if state.fence_leader_epoch > leader_epoch:
            return _refused(ErrorCode.FENCED_LEADER_EPOCH)
        if not self._is_topic_known(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        answer = Answer(state=state)
        if state.fence_leader_epoch == leader_epoch:
            return Result([], answer)
        change = replace(state, leader_epoch=leader_epoch, batches=())
        return Result([self._record_of(key, state, change)], answer)

    def write(self, key: ShareKey, write: StateWrite) -> Result[Answer]:
        """Keep a change."""
        state = self.state(key)
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if write.leader_epoch < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_LEADER_EPOCH)
        if write.state_epoch < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_STATE_EPOCH)
        if state is None:
            return _refused(ErrorCode.INVALID_REQUEST, WRITE_UNINITIALIZED)
        if state.fence_leader_epoch > write.leader_epoch:
            return _refused(ErrorCode.FENCED_LEADER_EPOCH)
        if state.fence_state_epoch > write.state_epoch:
            return _refused(ErrorCode.FENCED_STATE_EPOCH)
        if not self._is_topic_known(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if any(each.last_offset < each.first_offset for each in write.batches):
            return _refused(ErrorCode.INVALID_REQUEST, BACKWARDS)
        start_offset = max(write.start_offset, state.start_offset)
        complete_count = write.complete_count
        if write.start_offset == state.start_offset:
            complete_count = max(complete_count, state.complete_count)
        elif write.start_offset < state.start_offset:
            complete_count = state.complete_count
        change = replace(
            state,
            start_offset=start_offset,
            complete_count=complete_count,
            batches=merged((), write.batches, start_offset),
        )
        return Result([self._record_of(key, state, change)], Answer())

    def summary(self, key: ShareKey) -> Result[Answer]:
        """The state; of a share partition that was not initialized, one without a start."""
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not self._is_topic_known(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return Result([], Answer(state=self.state(key) or ShareState()))

    def delete(self, key: ShareKey) -> Result[Answer]:
        """Forget a share partition; one that is not there is forgotten already."""
        if key.partition < 0:
            return _refused(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
        if not self._is_topic_known(key):
            return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return Result([] if self.state(key) is None else [tombstone(key)], Answer())

    def of_topics(self, topic_ids: frozenset[bytes]) -> list[ShareKey]:
        """All share partitions of topics."""
        return [key for key, _ in self._all() if key.topic_id in topic_ids]

    def cold(self, interval_ms: int) -> list[ShareKey]:
        """The share partitions whose snapshot is so old; none when each has been repeated already."""
        now_ms = self._clock.now_ms()
        found = self._all()
        if all(state.create_ms != state.write_ms for _, state in found):
            return []
        return [key for key, state in found if now_ms - state.write_ms >= interval_ms]

    def repeat_snapshots(self, keys: Sequence[ShareKey]) -> Result[int]:
        """Snapshots of cold share partitions; the response is how many of `keys` were dealt with."""
        now_ms = self._clock.now_ms()

        def again(key: ShareKey) -> CoordinatorRecord | None:
            state = self.state(key)
            if state is None:
                return None
            return snapshot_record(
                key, replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_ms=now_ms)
            )

        return _as_fit(keys, again)

    def end(self, keys: Sequence[ShareKey]) -> Result[int]:
        """Tombstones, as `repeat_snapshots` makes snapshots."""
        return _as_fit(keys, lambda key: None if self.state(key) is None else tombstone(key))

    def needed_from(self) -> int | None:
        """The offset before which no record counts any more, by committed records; None: not known."""
        states = self._states
        offsets = [
            state.log_offset
            for group_id in states.committed_outer_keys()
            for state in states.committed_row(group_id).values()
        ]
        return min(offsets) if offsets else self._ended.committed("", "")

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """Apply a record. Raises MalformedMessage."""
        kind = records.record_type(key)
        if kind not in (records.SNAPSHOT, records.UPDATE):
            self._pass_over(kind, -1)
            return
        share_key = records.read_key(key)
        before = self.state(share_key)
        if kind == records.SNAPSHOT:
            if value is None:
                self._states.remove(share_key.group_id, share_key[1:])
                self._ended.put("", "", offset)
                return
            snapshot = records.read_snapshot(value)
            if snapshot is None:
                self._pass_over(kind, records.record_type(value))
                return
            after = after_snapshot(before, snapshot, offset, self._settings.updates_per_snapshot)
        else:
            update = None if value is None else records.read_update(value)
            if update is None:
                self._pass_over(kind, -1 if value is None else records.record_type(value))
                return
            after = after_update(before, update, offset)
        self._states.put(share_key.group_id, share_key[1:], after)

    def replay_end_marker(self, producer_id: int, commit: bool) -> None:
        """Nothing here is written in transactions."""

    def on_loaded(self, now_ms: int) -> None:
        """Nothing goes on by itself."""

    def on_unloaded(self) -> None:
        """Forget everything."""
        free(self._states.take(), self._timers)
        self._ended.take()

    def _record_of(self, key: ShareKey, state: ShareState, change: ShareState) -> CoordinatorRecord:
        """`change` has the new batches alone; a snapshot takes the others along."""
        if state.updates < self._settings.updates_per_snapshot:
            return update_record(key, change)
        now_ms = self._clock.now_ms()
        return snapshot_record(
            key,
            replace(
                change,
                snapshot_epoch=state.snapshot_epoch + 1,
                batches=merged(state.batches, change.batches, change.start_offset),
                create_ms=now_ms,
                write_ms=now_ms,
            ),
        )

    def _is_topic_known(self, key: ShareKey) -> bool:
        return key.partition < self._settings.partition_count(key.topic_id)

    def _all(self) -> list[tuple[ShareKey, ShareState]]:
        return [(ShareKey(group_id, *inner), state) for group_id, inner, state in self._states.items()]

    def _pass_over(self, kind: int, version: int) -> None:
        if (kind, version) not in self._unknown:
            self._unknown.add((kind, version))
            _log.warning(
                "Records of __share_group_state of type %d with value version %d are not known to this "
                "broker; they have no effect", kind, version,
            )  # fmt: skip


def _refused(error: ErrorCode, message: str | None = None) -> Result[Answer]:
    return Result([], Answer(error, error.message if message is None else message))


def _as_fit(keys: Sequence[ShareKey], make: Callable[[ShareKey], CoordinatorRecord | None]) -> Result[int]:
    """Records for `keys` in turn, until they are enough for one batch."""
    made: list[CoordinatorRecord] = []
    size = done = 0
    for key in keys:
        if size >= BYTES_AT_ONCE:
            break
        done += 1
        record = make(key)
        if record is not None:
            made.append(record)
            size += len(record.key) + len(record.value or b"")
    return Result(made, done)

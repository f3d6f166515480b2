"""Shards of a coordinator over the partitions of one internal topic: who serves which, and how state and log
stay together.

States of a partition: INITIAL, LOADING, ACTIVE, FAILED (until the next election), CLOSED (final; the entry
is dropped). The leader epoch is the coordinator epoch; older news is ignored.

A write is one synchronous stretch: ownership, operation, append, replay into the state; then the response is
parked until its batch is committed. State runs ahead of the committed end; the shard's `Journal` leads back
when an append fails, which takes every later batch with it. A write without records waits for the last batch
before it, because it may have seen uncommitted state. Reads look at committed state.

A response that is not decided within the write time-out is answered REQUEST_TIMED_OUT (as its mapped code);
the records stay appended and the state with them. One timer for each partition sees to that: it is set for
the earliest end of a parked response and looks again when it rings, so a write that is decided in time, which
is nearly every one, neither sets nor cancels one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

from coordinator.journal import Journal
from coordinator.loader import LOAD_BUFFER_BYTES, Turn, load, next_pass
from coordinator.owned import NEVER_MS, Done, OwnedPartition, Parked, answer
from coordinator.owned import Context as Context
from coordinator.owned import State as State
from coordinator.placement import partition_for
from coordinator.ports import (
    AppendRefused,
    Clock,
    Guard,
    PartitionReader,
    PartitionWriter,
    ReadFailed,
    Timer,
)
from coordinator.result import CoordinatorError, CoordinatorRecord, Result, append_error
from coordinator.shard import Shard
from coordinator.timer import KeyedTimers
from protocol.errors import ErrorCode, InvalidRecords, ProtocolViolation
from protocol.records.batch import NO_PRODUCER_ID, Record
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker
from protocol.records.keyed import keyed_batch
from protocol.records.rules import Checked, trusted_batch

WRITE_TIMEOUT_MS = 5000
"""Default of offsets.commit.timeout.ms, which bounds all writes of groups."""

S = TypeVar("S", bound=Shard)
ShardOf = TypeVar("ShardOf", bound=Shard, contravariant=True)
R = TypeVar("R")

_log = logging.getLogger(__name__)


class Spawner(Protocol):
    """runtime's TaskScope."""

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> object: ...


class Prepared(Protocol[ShardOf]):
    """A write that brings its batch along, not compressed."""

    def batch(self, shard: ShardOf, now_ms: int) -> Checked:
        """Raises CoordinatorError where it is refused; then state is as it was before."""

    def apply(self, shard: ShardOf, base_offset: int) -> None:
        """Change the state as the batch's records would, now that they have offsets."""


class CoordinatorRuntime(Generic[S]):
    """One coordinator (groups, transactions, share state) of this broker. It compresses with `codec`; `turn`
    comes before each piece of long work.
    """

    def __init__(
        self,
        topic: str,
        writer: PartitionWriter,
        reader: PartitionReader,
        clock: Clock,
        timer: Timer,
        tasks: Spawner,
        make_shard: Callable[[Context], S],
        *,
        codec: int = 0,
        write_timeout_ms: int = WRITE_TIMEOUT_MS,
        load_buffer_bytes: int = LOAD_BUFFER_BYTES,
        turn: Turn = next_pass,
    ) -> None:
        self.topic = topic
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._timer = timer
        self._tasks = tasks
        self._make_shard = make_shard
        self._turn = turn
        self._codec = codec
        self._write_timeout_ms = write_timeout_ms
        self._load_buffer_bytes = load_buffer_bytes
        self._partitions: dict[int, OwnedPartition[S]] = {}
        self._started = False
        self._partition_count = 0

    @property
    def compresses(self) -> bool:
        """Whether batches of the topic are compressed."""
        return bool(self._codec)

    def start(self, partition_count: int) -> None:
        """Begin to serve; `partition_count` is the topic's, or what it will be created with. 0: it is not
        known yet: no key is looked after, but partitions are loaded and what they hold is gone on with.
        """
        self._started = True
        self._partition_count = partition_count

    @property
    def partition_count(self) -> int:
        """Over how many partitions keys are spread; 0 while nothing is served."""
        return self._partition_count

    def close(self) -> None:
        """Refuse everything from now on and let go of all partitions."""
        self._started = False
        self._partition_count = 0
        for partition in list(self._partitions):
            self.unload(partition)

    def partition_for(self, key: str) -> int:
        """Where a key lives. CoordinatorError (COORDINATOR_NOT_AVAILABLE) before start and after close."""
        if not self._partition_count:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return partition_for(key, self._partition_count)

    def state(self, partition: int) -> State:
        """Where a partition stands; CLOSED where this broker has never owned it or no longer does."""
        owned = self._partitions.get(partition)
        return State.CLOSED if owned is None else owned.state

    def epoch(self, partition: int) -> int:
        """The coordinator epoch of a partition that is served here. Raises CoordinatorError."""
        return self._active(partition).epoch

    def load(self, partition: int, epoch: int) -> None:
        """This broker has become the leader at `epoch`. A partition that it serves already just learns it."""
        owned = self._partitions.get(partition)
        if owned is not None and epoch <= owned.epoch:
            return
        if owned is not None and owned.state in (State.LOADING, State.ACTIVE):
            owned.epoch = epoch
            return

        def append(records: list[CoordinatorRecord], decided: Callable[[ErrorCode], None]) -> None:
            self._append_later_told(partition, records, decided)

        def write(operation: Callable[[], Result[Any]], done: Done) -> None:
            self.write(partition, lambda _: operation(), done)

        context = Context(partition, Journal(), KeyedTimers(self._timer), append, write)
        owned = OwnedPartition(self._make_shard(context), context, State.LOADING, epoch)
        self._partitions[partition] = owned
        self._tasks.spawn(f"load {self.topic}-{partition}", self._load(partition, owned))

    def unload(self, partition: int, epoch: int | None = None) -> None:
        """This broker has resigned at `epoch`; None: whatever the epoch. Parked writes: NOT_COORDINATOR."""
        owned = self._partitions.get(partition)
        if owned is None or (epoch is not None and epoch <= owned.epoch):
            return
        del self._partitions[partition]
        self._let_go(owned, State.CLOSED)

    def write(
        self,
        partition: int,
        operation: Callable[[S], Result[R]],
        done: Callable[[ErrorCode, R | None], None],
        timeout_ms: int | None = None,
    ) -> None:
        """Run an operation and append its records; `done` gets NONE and the response once they are committed.

        `done` gets an error and None when the partition is not served here, the operation raised
        CoordinatorError, or the records were not appended (then state is as if the operation had not been).
        Called exactly once; at once where nothing has to be waited for.
        """
        try:
            owned = self._active(partition)
            result = operation(owned.shard)
            now_ms = self._clock.now_ms()
            parked = Parked(owned, result.response, done, result.undo)
            if result.records:
                self._append(partition, owned, result, parked, now_ms)
            elif owned.parked:
                parked.base_offset = parked.end_offset = owned.parked[-1].end_offset
            else:
                done(ErrorCode.NONE, result.response)
                return
        except (CoordinatorError, AppendRefused) as error:
            done(append_error(error.error), None)
            return
        self._park(owned, parked, timeout_ms, now_ms)

    def write_prepared(
        self, partition: int, prepared: Prepared[S], done: Callable[[ErrorCode, None], None]
    ) -> None:
        """`write` of a batch that somebody else makes and applies; all of it is one step for the journal."""
        try:
            owned = self._active(partition)
            now_ms = self._clock.now_ms()
            batch = prepared.batch(owned.shard, now_ms)
            parked = Parked(owned, None, done)
            self._stage(partition, owned, batch, parked)
        except (CoordinatorError, AppendRefused) as error:
            done(append_error(error.error), None)
            return
        base_offset = owned.context.journal.offset = parked.base_offset
        prepared.apply(owned.shard, base_offset)
        self._park(owned, parked, None, now_ms)

    def write_end_marker(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        done: Callable[[ErrorCode, None], None],
        timeout_ms: int | None = None,
        transaction_version: int = 0,
    ) -> None:
        """Append the end of a producer's transaction and apply it, as WriteTxnMarkers asks for."""
        now_ms = self._clock.now_ms()
        try:
            owned = self._active(partition)
            marker = build_end_marker(
                commit,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=now_ms,
            )
            parked = Parked(owned, None, done)
            self._stage(partition, owned, trusted_batch(marker), parked, None, transaction_version)
        except (CoordinatorError, AppendRefused) as error:
            done(append_error(error.error), None)
            return
        owned.context.journal.offset = parked.base_offset
        owned.shard.replay_end_marker(producer_id, commit)
        self._park(owned, parked, timeout_ms, now_ms)

    def shard(self, partition: int) -> S:
        """The shard of a partition, for one synchronous look at it. Raises CoordinatorError."""
        return self._active(partition).shard

    def read(self, partition: int, operation: Callable[[S], R]) -> R:
        """Look at a shard; the operation reads committed state. Raises CoordinatorError."""
        return operation(self._active(partition).shard)

    def read_all(self, operation: Callable[[S], R]) -> list[R]:
        """Look at every shard that is served here, in the order of partitions.

        Raises CoordinatorError: COORDINATOR_NOT_AVAILABLE, or COORDINATOR_LOAD_IN_PROGRESS while any loads.
        """
        if not self._started:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        owned = [self._partitions[partition] for partition in sorted(self._partitions)]
        if any(each.state is State.LOADING for each in owned):
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [operation(each.shard) for each in owned if each.state is State.ACTIVE]

    def active_partitions(self) -> list[int]:
        """The partitions that are served, sorted; for what runs over all of them, as expiry does."""
        return [number for number in sorted(self._partitions) if self.state(number) is State.ACTIVE]

    def _active(self, partition: int) -> OwnedPartition[S]:
        if not self._started:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        owned = self._partitions.get(partition)
        if owned is not None and owned.state is State.ACTIVE:
            return owned
        if owned is not None and owned.state in (State.INITIAL, State.LOADING):
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise CoordinatorError(ErrorCode.NOT_COORDINATOR)

    def _append(
        self, partition: int, owned: OwnedPartition[S], result: Result[Any], parked: Parked, now_ms: int
    ) -> None:
        batch = self._batch(result, now_ms)
        try:
            self._stage(partition, owned, batch, parked, result.guard)
        except AppendRefused:
            if result.undo is not None:
                result.undo()
            raise
        if result.replay:
            journal, replay = owned.context.journal, owned.shard.replay
            producer_id = result.producer.producer_id
            for offset, (key, value) in enumerate(result.records, parked.base_offset):
                journal.offset = offset
                replay(key, value, offset, producer_id)

    def _append_later_told(
        self, partition: int, records: list[CoordinatorRecord], decided: Callable[[ErrorCode], None]
    ) -> None:
        """A refusal comes by a timer, as the state machine has not finished with its event yet."""
        returned = False

        def done(error: ErrorCode, _: None) -> None:
            if returned:
                decided(error)
            else:
                self._timer.add(0, lambda: decided(error))

        assert records, "a state machine that changed without records has nothing to wait for"
        self.write(partition, lambda _: Result(records, None, replay=False), done)
        returned = True

    def _batch(self, result: Result[Any], now_ms: int) -> Checked:
        producer_id, producer_epoch = result.producer
        transactional = producer_id != NO_PRODUCER_ID
        if not self._codec:
            return keyed_batch(
                result.records,
                now_ms,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transactional=transactional,
            )
        batch = build_batch(
            [Record(0, now_ms, key, value) for key, value in result.records],
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=transactional,
        )
        return trusted_batch(batch)

    def _stage(
        self,
        partition: int,
        owned: OwnedPartition[S],
        batch: Checked,
        parked: Parked,
        guard: Guard | None = None,
        transaction_version: int = 0,
    ) -> None:
        base_offset = self._writer.append(
            partition, batch, owned.epoch, parked.settle, guard, transaction_version
        )
        assert base_offset >= owned.appended_end, "the log gave out an offset twice"
        parked.base_offset = base_offset
        parked.end_offset = owned.appended_end = base_offset + batch.record_count

    def _park(self, owned: OwnedPartition[S], parked: Parked, timeout_ms: int | None, now_ms: int) -> None:
        owned.parked.append(parked)
        timeout_ms = self._write_timeout_ms if timeout_ms is None else timeout_ms
        parked.deadline_ms = deadline_ms = now_ms + timeout_ms
        if deadline_ms < owned.alarm_ms:
            self._set_alarm(owned, deadline_ms, timeout_ms)

    def _set_alarm(self, owned: OwnedPartition[S], deadline_ms: int, delay_ms: int) -> None:
        if owned.alarm is not None:
            owned.alarm.cancel()
        owned.alarm_ms = deadline_ms
        owned.alarm = self._timer.add(delay_ms, lambda: self._time_over(owned))

    def _time_over(self, owned: OwnedPartition[S]) -> None:
        """Answer those whose time is over; they stay parked, as what becomes of their records is open."""
        owned.alarm, owned.alarm_ms = None, NEVER_MS
        now_ms = self._clock.now_ms()
        late = [each for each in owned.parked if each.done is not None and each.deadline_ms <= now_ms]
        rest = [each.deadline_ms for each in owned.parked if each.deadline_ms > now_ms]
        if rest:
            self._set_alarm(owned, min(rest), min(rest) - now_ms)
        for parked in late:
            done, parked.done = parked.done, None
            if done is not None:
                done(append_error(ErrorCode.REQUEST_TIMED_OUT), None)

    async def _load(self, partition: int, owned: OwnedPartition[S]) -> None:
        def still_wanted() -> bool:
            return owned.state is State.LOADING

        try:
            replayed = await load(
                self._reader, partition, owned.shard, still_wanted, self._load_buffer_bytes, self._turn
            )
        except (ReadFailed, InvalidRecords, ProtocolViolation) as error:
            self._load_failed(partition, owned, error)
            return
        except Exception as error:
            self._load_failed(partition, owned, error)
            raise
        if replayed is None or not still_wanted():
            return
        owned.state = State.ACTIVE
        owned.appended_end = replayed.next_offset
        owned.context.journal.recording = True
        owned.shard.on_loaded(self._clock.now_ms())
        _log.info("%s-%d is loaded: %d records", self.topic, partition, replayed.records)
        if replayed.skipped:
            _log.warning(
                "%s-%d has %d records that no coordinator wrote; they have no effect; %s",
                self.topic, partition, replayed.skipped, replayed.reason,
            )  # fmt: skip

    def _load_failed(self, partition: int, owned: OwnedPartition[S], error: Exception) -> None:
        _log.error(
            "%s-%d can't be loaded, its keys have no coordinator until the next election: %s",
            self.topic, partition, error,
        )  # fmt: skip
        if owned.state is State.LOADING:
            self._let_go(owned, State.FAILED)

    def _let_go(self, owned: OwnedPartition[S], state: State) -> None:
        owned.state = state
        owned.context.timers.cancel_all()
        if owned.alarm is not None:
            owned.alarm.cancel()
            owned.alarm, owned.alarm_ms = None, NEVER_MS
        parked, owned.parked = owned.parked, deque()
        answer(parked, ErrorCode.NOT_COORDINATOR)
        owned.shard.on_unloaded()

"""Shards of a coordinator over the partitions of one internal topic: who serves which, and how state and log
stay together.

States of a partition: INITIAL, LOADING, ACTIVE, FAILED (until the next election), CLOSED (final; the entry
is dropped). The leader epoch is the coordinator epoch; older news is ignored.

A write is one synchronous stretch: ownership, operation, append, replay into the state; then the response is
parked until its batch is committed. State runs ahead of the committed end; the shard's `Journal` leads back
when an append fails, which takes every later batch with it. A write without records waits for the last batch
before it, because it may have seen uncommitted state. Reads look at committed state.

A response that is not decided within the write time-out is answered REQUEST_TIMED_OUT (as its mapped code);
the records stay appended and the state with them.

Invariant: parked responses stand in the order of their offsets, and are answered in that order, after the
state has been committed or rolled back.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from coordinator.journal import Journal
from coordinator.loader import LOAD_BUFFER_BYTES, load
from coordinator.placement import partition_for
from coordinator.ports import (
    AppendRefused,
    Cancellable,
    Clock,
    PartitionReader,
    PartitionWriter,
    ReadFailed,
    Timer,
)
from coordinator.result import NO_PRODUCER, CoordinatorError, CoordinatorRecord, Result, append_error
from coordinator.shard import Shard
from coordinator.timer import KeyedTimers
from protocol.errors import ErrorCode, InvalidRecords, ProtocolViolation
from protocol.records.batch import Record, read_header
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker

WRITE_TIMEOUT_MS = 5000
"""Default of offsets.commit.timeout.ms, which bounds all writes of groups."""
NO_EPOCH = -1

S = TypeVar("S", bound=Shard)
R = TypeVar("R")
Done = Callable[[ErrorCode, Any], None]
Append = Callable[[list[CoordinatorRecord], Callable[[ErrorCode], None]], None]
Write = Callable[[Callable[[], Result[Any]], Done], None]

_log = logging.getLogger(__name__)


class State(Enum):
    """Where a partition stands."""

    INITIAL = "initial"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


class Spawner(Protocol):
    """runtime's TaskScope."""

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None]) -> object: ...


@dataclass(slots=True)
class Context:
    """What a shard's maker is given: the shard must keep what records change in tables over this journal.

    `append` is for state machines that have changed by themselves: the records are appended without being
    applied, and the callback hears NONE or the error. It is called once, and only after `append` returned.
    `write` runs an operation on the shard as a request's: for timers that ring, and work that comes back.
    """

    partition: int
    journal: Journal
    timers: KeyedTimers
    append: Append
    write: Write


@dataclass(slots=True)
class _Parked:
    """A response that waits until records before `end_offset` are committed."""

    response: Any
    done: Done | None  # none once it was answered
    base_offset: int = 0
    end_offset: int = 0
    decided: bool = False
    undo: Callable[[], None] | None = None
    timer: Cancellable | None = None


@dataclass(slots=True)
class _Partition(Generic[S]):
    shard: S
    context: Context
    state: State = State.INITIAL
    epoch: int = NO_EPOCH
    parked: deque[_Parked] = field(default_factory=deque)
    appended_end: int = 0


class CoordinatorRuntime(Generic[S]):
    """One coordinator (groups, transactions, share state) of this broker. It compresses with `codec`."""

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
    ) -> None:
        self.topic = topic
        self._writer = writer
        self._reader = reader
        self._clock = clock
        self._timer = timer
        self._tasks = tasks
        self._make_shard = make_shard
        self._codec = codec
        self._write_timeout_ms = write_timeout_ms
        self._load_buffer_bytes = load_buffer_bytes
        self._partitions: dict[int, _Partition[S]] = {}
        self._partition_count = 0

    def start(self, partition_count: int) -> None:
        """Begin to serve; `partition_count` is the topic's, or what it will be created with."""
        self._partition_count = partition_count

    def close(self) -> None:
        """Refuse everything from now on and let go of all partitions."""
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
        owned = _Partition(self._make_shard(context), context, State.LOADING, epoch)
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
            parked = _Parked(result.response, done, undo=result.undo)
            if result.records:
                self._append(partition, owned, result, parked)
            elif owned.parked:
                parked.base_offset = parked.end_offset = owned.parked[-1].end_offset
            else:
                done(ErrorCode.NONE, result.response)
                return
        except (CoordinatorError, AppendRefused) as error:
            done(append_error(error.error), None)
            return
        self._park(owned, parked, timeout_ms)

    def write_end_marker(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        commit: bool,
        done: Callable[[ErrorCode, None], None],
        timeout_ms: int | None = None,
    ) -> None:
        """Append the end of a producer's transaction and apply it, as WriteTxnMarkers asks for."""
        try:
            owned = self._active(partition)
            marker = build_end_marker(
                commit,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=self._clock.now_ms(),
            )
            parked = _Parked(None, done)
            self._stage(partition, owned, marker, parked)
        except (CoordinatorError, AppendRefused) as error:
            done(append_error(error.error), None)
            return
        owned.context.journal.offset = parked.base_offset
        owned.shard.replay_end_marker(producer_id, commit)
        self._park(owned, parked, timeout_ms)

    def read(self, partition: int, operation: Callable[[S], R]) -> R:
        """Look at a shard; the operation reads committed state. Raises CoordinatorError."""
        return operation(self._active(partition).shard)

    def read_all(self, operation: Callable[[S], R]) -> list[R]:
        """Look at every shard that is served here, in the order of partitions.

        Raises CoordinatorError: COORDINATOR_NOT_AVAILABLE, or COORDINATOR_LOAD_IN_PROGRESS while any loads.
        """
        if not self._partition_count:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        owned = [self._partitions[partition] for partition in sorted(self._partitions)]
        if any(each.state is State.LOADING for each in owned):
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [operation(each.shard) for each in owned if each.state is State.ACTIVE]

    def active_partitions(self) -> list[int]:
        """The partitions that are served, sorted; for what runs over all of them, as expiry does."""
        return [number for number in sorted(self._partitions) if self.state(number) is State.ACTIVE]

    def _active(self, partition: int) -> _Partition[S]:
        if not self._partition_count:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        owned = self._partitions.get(partition)
        if owned is not None and owned.state is State.ACTIVE:
            return owned
        if owned is not None and owned.state in (State.INITIAL, State.LOADING):
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise CoordinatorError(ErrorCode.NOT_COORDINATOR)

    def _append(self, partition: int, owned: _Partition[S], result: Result[Any], parked: _Parked) -> None:
        now_ms = self._clock.now_ms()
        producer_id, producer_epoch = result.producer
        batch = build_batch(
            [Record(0, now_ms, key, value) for key, value in result.records],
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional=result.producer != NO_PRODUCER,
        )
        try:
            self._stage(partition, owned, batch, parked)
        except AppendRefused:
            if result.undo is not None:
                result.undo()
            raise
        if result.replay:
            journal, replay = owned.context.journal, owned.shard.replay
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

    def _stage(self, partition: int, owned: _Partition[S], batch: bytearray, parked: _Parked) -> None:
        def decided(error: ErrorCode) -> None:
            if parked.decided or owned.state is not State.ACTIVE:
                return  # an earlier failure took it along, or the partition has gone
            if error is ErrorCode.NONE:
                self._committed(owned, parked.end_offset)
            else:
                self._failed(owned, parked.base_offset, error)

        count = read_header(batch).record_count
        parked.base_offset = self._writer.append(partition, batch, owned.epoch, decided)
        parked.end_offset = parked.base_offset + count
        assert parked.base_offset >= owned.appended_end, "the log gave out an offset twice"
        owned.appended_end = parked.end_offset

    def _park(self, owned: _Partition[S], parked: _Parked, timeout_ms: int | None) -> None:
        def time_over() -> None:
            done, parked.done = parked.done, None
            if done is not None:
                done(append_error(ErrorCode.REQUEST_TIMED_OUT), None)

        owned.parked.append(parked)
        timeout_ms = self._write_timeout_ms if timeout_ms is None else timeout_ms
        parked.timer = self._timer.add(timeout_ms, time_over)

    def _committed(self, owned: _Partition[S], end_offset: int) -> None:
        owned.context.journal.commit(end_offset)
        answered = []
        while owned.parked and owned.parked[0].end_offset <= end_offset:
            answered.append(owned.parked.popleft())
        _answer(answered, ErrorCode.NONE)

    def _failed(self, owned: _Partition[S], base_offset: int, error: ErrorCode) -> None:
        owned.context.journal.roll_back(base_offset)
        owned.appended_end = base_offset
        failed = []
        while owned.parked and owned.parked[-1].end_offset > base_offset:
            failed.append(owned.parked.pop())
            if (undo := failed[-1].undo) is not None:
                undo()
        failed.reverse()
        _answer(failed, append_error(error))

    async def _load(self, partition: int, owned: _Partition[S]) -> None:
        def still_wanted() -> bool:
            return owned.state is State.LOADING

        try:
            replayed = await load(self._reader, partition, owned.shard, still_wanted, self._load_buffer_bytes)
        except (ReadFailed, InvalidRecords, ProtocolViolation) as error:
            _log.error(
                "%s-%d can't be loaded, its keys have no coordinator until the next election: %s",
                self.topic, partition, error,
            )  # fmt: skip
            if still_wanted():
                self._let_go(owned, State.FAILED)
            return
        if replayed is None or not still_wanted():
            return
        owned.state = State.ACTIVE
        owned.appended_end = replayed.next_offset
        owned.context.journal.recording = True
        owned.shard.on_loaded(self._clock.now_ms())
        _log.info("%s-%d is loaded: %d records", self.topic, partition, replayed.records)

    def _let_go(self, owned: _Partition[S], state: State) -> None:
        owned.state = state
        owned.context.timers.cancel_all()
        parked, owned.parked = owned.parked, deque()
        _answer(parked, ErrorCode.NOT_COORDINATOR)
        owned.shard.on_unloaded()


def _answer(decided: Iterable[_Parked], error: ErrorCode) -> None:
    """All are marked first: an answer may lead to a write, which may get the offsets of one that failed."""
    decided = list(decided)
    for parked in decided:
        parked.decided = True
        if parked.timer is not None:
            parked.timer.cancel()
    for parked in decided:
        done, parked.done = parked.done, None
        if done is not None:
            done(error, parked.response if error is ErrorCode.NONE else None)

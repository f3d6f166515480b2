"""The way to the state of share partitions: one object for the leaders of share partitions and for the group
coordinator, which need not know where the share coordinator is.

It is the coordinator of this broker. Its topic is made by the first call. A call that finds it loading, not
there or not the owner is made again after a pause, as Kafka's persister does; what comes for the same share
partition meanwhile waits behind it, so that calls for one share partition never overtake each other.

Implements `replication.share.ports.SharePersister` and `coordinator.group.share.ports.SharePersister`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from coordinator.share.batches import StateBatch
from coordinator.share.manager import Done, ShareStateManager
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer
from coordinator.share.shard import StateWrite as Write
from protocol.errors import ErrorCode
from replication.share import ports

if TYPE_CHECKING:
    from broker.share_state import ShareState
    from coordinator.group.share.ports import Cell, Errors, StartOffsets, Summary
    from coordinator.group.share.state_partitions import Partitions
    from runtime.system import Env

ATTEMPTS: Final = 5
FIRST_PAUSE_MS: Final = 1000
LONGEST_PAUSE_MS: Final = 30_000
AGAIN: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)

V = TypeVar("V")
Operation = Callable[[ShareStateManager, Done], None]


@dataclass(slots=True)
class _Call:
    """An operation that goes on until it is answered."""

    operation: Operation
    done: Done
    attempts: int = 0


class Persister:
    """See the module."""

    def __init__(self, coordinator: ShareState, env: Env) -> None:
        self._coordinator = coordinator
        self._env = env
        self._waiting: dict[ShareKey, deque[_Call]] = {}
        self._creating: list[tuple[ShareKey, _Call]] | None = None

    def read(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        leader_epoch: int,
        done: Callable[[ErrorCode, ports.ShareState | None], None],
    ) -> None:
        """For a leader that begins; see `replication.share.ports`."""
        key = ShareKey(group_id, topic_id, partition)

        def decided(answer: Answer) -> None:
            state = answer.state
            if state is None:
                done(answer.error, None)
                return
            batches = [ports.StateBatch(*each) for each in state.batches]
            done(answer.error, ports.ShareState(state.state_epoch, state.start_offset, batches))

        self._call(key, lambda manager, done: manager.read(key, leader_epoch, done), decided)

    def write(self, change: ports.StateWrite, done: Callable[[ErrorCode], None]) -> None:
        """For a leader's changes; see `replication.share.ports`."""
        key = ShareKey(change.group_id, change.topic_id, change.partition)
        write = Write(
            change.state_epoch,
            change.leader_epoch,
            change.start_offset,
            change.delivery_complete_count,
            [StateBatch(*each) for each in change.batches],
        )
        self._call(
            key, lambda manager, done: manager.write(key, write, done), lambda answer: done(answer.error)
        )

    def initialize(
        self, group_id: str, start_offsets: StartOffsets, state_epoch: int, done: Callable[[Errors], None]
    ) -> None:
        """For groups; see `coordinator.group.share.ports`."""

        def operation(key: ShareKey) -> Operation:
            start_offset = start_offsets[key.topic_id][key.partition]
            return lambda manager, done: manager.initialize(key, state_epoch, start_offset, done)

        self._each(group_id, start_offsets, operation, lambda answer: answer.error, done)

    def delete(self, group_id: str, partitions: Partitions, done: Callable[[Errors], None]) -> None:
        """For groups; see `coordinator.group.share.ports`."""

        def operation(key: ShareKey) -> Operation:
            return lambda manager, done: manager.delete(key, done)

        self._each(group_id, partitions, operation, lambda answer: answer.error, done)

    def summaries(
        self, group_id: str, partitions: Partitions, done: Callable[[dict[Cell, Summary]], None]
    ) -> None:
        """For groups; see `coordinator.group.share.ports`."""

        from coordinator.group.share.ports import Summary

        def operation(key: ShareKey) -> Operation:
            return lambda manager, done: manager.summary(key, done)

        def summary(answer: Answer) -> Summary:
            state = answer.state
            if state is None:
                return Summary(answer.error)
            return Summary(answer.error, state.start_offset, state.leader_epoch, state.complete_count)

        self._each(group_id, partitions, operation, summary, done)

    def _each(
        self,
        group_id: str,
        partitions: Partitions,
        operation: Callable[[ShareKey], Operation],
        value_of: Callable[[Answer], V],
        done: Callable[[dict[Cell, V]], None],
    ) -> None:
        """One call for every partition; `done` comes later, with what all of them came to."""
        cells = [(topic_id, each) for topic_id in partitions for each in partitions[topic_id]]
        keys = [ShareKey(group_id, *cell) for cell in dict.fromkeys(cells)]
        gathered: _Gathered[V] = _Gathered(
            keys, value_of, lambda found: self._env.loop.call_soon(done, found)
        )
        for key in keys:
            self._call(key, operation(key), gathered.taker(key))
        gathered.check()

    def close(self) -> None:
        """The broker stops: answer what still waits."""
        calls = [call for queue in self._waiting.values() for call in queue]
        calls += [call for _, call in self._creating or ()]
        self._waiting.clear()
        self._creating = None
        for call in calls:
            call.done(Answer(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def _call(self, key: ShareKey, operation: Operation, done: Done) -> None:
        self._submit(key, _Call(operation, done))

    def _submit(self, key: ShareKey, call: _Call) -> None:
        if self._coordinator.closed:
            call.done(Answer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif self._creating is not None:
            self._creating.append((key, call))
        elif not self._coordinator.has_topic():
            self._creating = [(key, call)]
            self._env.tasks.spawn("topic of share state", self._create())
        else:
            self._try(key, call)

    async def _create(self) -> None:
        try:
            await self._coordinator.create_topic()
        finally:
            calls, self._creating = self._creating or [], None
            for key, call in calls:
                self._try(key, call)

    def _try(self, key: ShareKey, call: _Call) -> None:
        if (queue := self._waiting.get(key)) is not None:
            queue.append(call)
            return
        call.attempts += 1

        def decided(answer: Answer) -> None:
            if answer.error not in AGAIN or call.attempts >= ATTEMPTS or self._coordinator.closed:
                call.done(answer)
            elif (queue := self._waiting.get(key)) is not None:
                queue.append(call)
            else:
                self._waiting[key] = deque((call,))
                pause_ms = min(FIRST_PAUSE_MS << call.attempts - 1, LONGEST_PAUSE_MS)
                self._env.timer.add(pause_ms, lambda: self._again(key))

        call.operation(self._coordinator.manager(), decided)

    def _again(self, key: ShareKey) -> None:
        for call in self._waiting.pop(key, ()):
            self._submit(key, call)


class _Gathered(Generic[V]):
    """The answers of several calls, told together."""

    def __init__(
        self,
        keys: Iterable[ShareKey],
        value_of: Callable[[Answer], V],
        done: Callable[[dict[Cell, V]], Any],
    ) -> None:
        self._open = dict.fromkeys(keys)
        self._order = list(self._open)
        self._value_of = value_of
        self._done = done
        self._values: dict[ShareKey, V] = {}
        self._told = False

    def taker(self, key: ShareKey) -> Done:
        """What takes the answer of one call."""

        def take(answer: Answer) -> None:
            self._values[key] = self._value_of(answer)
            self._open.pop(key, None)
            self.check()

        return take

    def check(self) -> None:
        """Tell when nothing is open."""
        if not self._open and not self._told:
            self._told = True
            self._done({key[1:]: self._values[key] for key in self._order})

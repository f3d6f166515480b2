"""DeleteRecords with other replicas: answered when all of those that live have let the records go, too.

Followers take the leader's start with their next fetch and tell their own with the one after. Until the least
start of all live replicas has reached what was asked for the request waits at its partitions; when its time
is over, those that are not there get 7, and will get there all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from protocol.errors import ErrorCode
from replication.delete_records import DeletedRecords
from replication.leadership import Leadership
from replication.purgatory import DelayedOperation, Timer

Done = Callable[[], None]


class DelayedDelete(DelayedOperation):
    """One request; `results` are completed in place."""

    __slots__ = ("_done", "_leaderships", "_pending")

    def __init__(self, results: Sequence[DeletedRecords], timeout_ms: int, done: Done) -> None:
        super().__init__(timeout_ms)
        self._done = done
        self._pending = [each for each in results if each.error == ErrorCode.NONE]
        self._leaderships: list[Leadership] = []

    def wake(self) -> None:
        """A partition has news; it has let go of this waiter."""
        if not self.try_complete():
            self._watch()

    def try_complete(self) -> bool:
        waiting: list[DeletedRecords] = []
        for result in self._pending:
            partition = result.partition
            assert partition is not None, "a deletion without an error has a partition"
            if not partition.is_leader:
                result.error, result.low_watermark = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
                continue
            leadership = partition.leadership
            low = partition.log.start_offset if leadership is None else leadership.low_watermark()
            result.low_watermark = low
            if low < result.offset:
                waiting.append(result)
        self._pending = waiting
        return self.force_complete() if not waiting else False

    def park(self, timer: Timer) -> None:
        """Wait for what is not done."""
        for result in self._pending:
            assert result.partition is not None
            if result.partition.leadership is not None:
                result.partition.leadership.deleting += 1
                self._leaderships.append(result.partition.leadership)
        self._watch()
        self._wait(timer, self._ended)

    def _watch(self) -> None:
        for result in self._pending:
            assert result.partition is not None
            result.partition.waiters[self] = None

    def _ended(self) -> None:
        for leadership in self._leaderships:
            leadership.deleting -= 1

    def on_complete(self) -> None:
        for result in self._pending:
            assert result.partition is not None
            result.partition.waiters.pop(self, None)
            result.error = ErrorCode.REQUEST_TIMED_OUT
        self._done()


def await_replicas(results: Sequence[DeletedRecords], timeout_ms: int, timer: Timer, done: Done) -> None:
    """Call `done()` when all live replicas have deleted: at once where there is no other."""
    operation = DelayedDelete(results, timeout_ms, done)
    if not operation.try_complete():
        operation.park(timer)

"""acks=all: a written batch is acknowledged when every in-sync replica has it.

With an ISR of one that is so as soon as the write returned, and the request is answered in the same turn.
Else it waits at its partitions (`Partition.await_commit`), which call when their high watermark has passed it
or leadership goes. When its time is over the partitions that are not settled get 7; the records stay and may
commit later.
"""

from __future__ import annotations

from collections.abc import Callable

from protocol.errors import ErrorCode
from replication.produce import ProduceResult
from replication.purgatory import DelayedOperation, Timer

Done = Callable[[list[ProduceResult]], None]


class DelayedProduce(DelayedOperation):
    """One request with acks=all. `results` are settled one by one; those with an error are settled from the
    start.
    """

    __slots__ = ("_done", "_pending", "results")

    def __init__(self, results: list[ProduceResult], timeout_ms: int, done: Done) -> None:
        super().__init__(timeout_ms)
        self.results = results
        self._done = done
        self._pending = [result for result in results if result.error == ErrorCode.NONE]

    def wake(self) -> None:
        """A partition has committed more, or is led by another broker."""
        self.try_complete()

    def try_complete(self) -> bool:
        waiting: list[ProduceResult] = []
        for result in self._pending:
            verdict = result.partition.committed(result.last_offset)
            if verdict is None:
                waiting.append(result)
            elif verdict != ErrorCode.NONE:
                result.refuse(verdict, verdict.message)
        self._pending = waiting
        return self.force_complete() if not waiting else False

    def park(self, timer: Timer, on_end: Callable[[], None]) -> None:
        """Wait for the partitions that are not settled; `on_end` is called when the waiting ends."""
        for result in self._pending:
            result.partition.await_commit(self, result.last_offset)
        self._wait(timer, on_end)

    def on_complete(self) -> None:
        for result in self._pending:
            if result.partition.commits is not None:
                result.partition.commits.discard(self)
            result.refuse(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT.message)
        self._done(self.results)


class ProducePurgatory:
    """The requests with acks=all that wait for replicas; `delayed` is how many."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self.delayed = 0

    def wait(self, results: list[ProduceResult], timeout_ms: int, done: Done) -> None:
        """Call `done(results)` when all are settled: at once where no replica is missing."""
        operation = DelayedProduce(results, timeout_ms, done)
        if not operation.try_complete():
            self.delayed += 1
            operation.park(self._timer, self._ended)

    def _ended(self) -> None:
        self.delayed -= 1

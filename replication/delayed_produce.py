"""acks=all: a written batch is acknowledged when every in-sync replica has it.

With an ISR of one that is so as soon as the write returned, and the request is answered in the same turn.
Else it waits in the purgatory under its partitions, which are checked when a high watermark moves, an ISR
shrinks or leadership goes. When its time is over the partitions that are not settled get 7; the records stay
and may commit later.
"""

from __future__ import annotations

from collections.abc import Callable

from protocol.errors import ErrorCode
from replication.produce import ProduceResult
from replication.purgatory import DelayedOperation, Purgatory, Timer

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

    @property
    def keys(self) -> list[tuple[str, int]]:
        """What the operation waits for."""
        return [(result.partition.topic, result.partition.index) for result in self._pending]

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

    def on_complete(self) -> None:
        for result in self._pending:
            result.refuse(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT.message)
        self._done(self.results)


class ProducePurgatory:
    """The requests with acks=all that wait for replicas."""

    def __init__(self, timer: Timer) -> None:
        self.operations = Purgatory(timer)

    def wait(self, results: list[ProduceResult], timeout_ms: int, done: Done) -> None:
        """Call `done(results)` when all are settled: at once where no replica is missing."""
        operation = DelayedProduce(results, timeout_ms, done)
        if operation.keys:
            self.operations.try_complete_else_watch(operation, operation.keys)
        else:
            operation.force_complete()

    def check(self, topic: str, index: int) -> int:
        """A partition's high watermark, ISR or role changed; how many requests were answered by this."""
        return self.operations.check_and_complete((topic, index))

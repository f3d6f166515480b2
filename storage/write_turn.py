"""One write for each log and turn of the event loop.

Requests that arrive in one turn stage their batches; the turn's end writes each log once and then tells
everybody, in the order in which they came, whether theirs is in the file. Answers leave from those calls, so
nothing is acknowledged before its bytes were taken by the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from storage.errors import StorageFailed
from storage.partition_log import PartitionLog

Done: TypeAlias = Callable[[StorageFailed | None], None]


class WriteTurn:
    """Collects the logs with staged batches. `call_soon` is the event loop's: it ends the turn."""

    __slots__ = ("_armed", "_call_soon", "_logs", "_waiting")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._armed = False
        self._logs: list[PartitionLog] = []
        self._waiting: list[tuple[PartitionLog, int, Done]] = []

    def stage(self, log: PartitionLog, done: Done) -> None:
        """Call `done` after the log's next write: with None, or with the failure that undid it.

        To be called in the turn of `append_as_leader` and after it, for a duplicate too: its first copy may
        be staged in this very turn.
        """
        if not log.in_turn:
            log.in_turn = True
            self._logs.append(log)
        self._waiting.append((log, log.failures, done))
        if not self._armed:
            self._armed = True
            self._call_soon(self.flush)

    def flush(self) -> None:
        """Write all logs of the turn, then make the calls. What these stage belongs to the next turn."""
        logs, waiting = self._logs, self._waiting
        self._logs, self._waiting, self._armed = [], [], False
        for log in logs:
            log.in_turn = False
            try:
                log.write_pending()
            except StorageFailed as failure:
                log.last_failure = failure
            if log.on_written is not None:
                log.on_written()
        for log, failures, done in waiting:
            done(None if log.failures == failures else log.last_failure)

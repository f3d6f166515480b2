"""Appends that count only when they are on the disk (flush.messages), without waiting for it on the loop.

A log tells by `hold_from` that what it wrote from that offset on has to be synced before anybody may see it
or is told of it. One sync of a log runs at a time, on a thread; what is written meanwhile is covered by the
next one, which begins at once. So the cost of a sync is shared by all who wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from storage.append import NOT_HELD
from storage.errors import StorageFailed
from storage.flush_job import FlushJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.partition_log import PartitionLog


class Held(Protocol):
    """An answer that leaves when the records are on the disk."""

    def synced(self, error: StorageFailed | None) -> None:
        """They are, or never will be."""


class SyncGate:
    """The syncs of one log. `synced` is called after each that ended well."""

    __slots__ = ("_held", "_log", "_running", "_synced")

    def __init__(self, log: PartitionLog, synced: Callable[[], None]) -> None:
        self._log = log
        self._synced = synced
        self._running = False
        self._held: list[tuple[int, Held]] = []

    def begin(self) -> None:
        """Something was written that has to be synced. Raises StorageFailed where that cannot be done."""
        if self._running:
            return
        log = self._log
        if log.directory.on_job is None:  # nobody to do it elsewhere
            log.flush()
            log.hold_from = NOT_HELD
            return
        try:
            job = FlushJob(log, log.end_offset, ended=self._ended)
        except OSError as error:
            log.failed(error, "flush")
        self._running = True
        log.directory.background(job)

    def hold(self, answer: Held) -> None:
        """The answer about records that are written now waits for their sync."""
        self._held.append((self._log.end_offset, answer))

    def _ended(self, job: FlushJob, error: OSError | None) -> None:
        log = self._log
        self._running = False
        failure = None
        if log.closed and not log.directory.offline:  # the partition was deleted, and its files with it
            log.hold_from = NOT_HELD
        elif error is not None or log.directory.offline:
            failure = StorageFailed(f"the sync of {log.name} failed: {error}", offline=True)
        elif log.end_offset - log.recovery_point < log.config.flush_messages:
            log.hold_from = NOT_HELD
        else:
            log.hold_from = max(log.hold_from, job.upto)
            try:
                self.begin()
            except StorageFailed as failed:
                failure = failed
        if failure is None:
            self._synced()
        all_told = failure is not None or log.hold_from == NOT_HELD
        held, self._held = self._held, []
        for upto, answer in held:
            if all_told or upto <= job.upto:
                answer.synced(failure)
            else:
                self._held.append((upto, answer))

"""Flushing a log without waiting on the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.partition_log import PartitionLog


class FlushJob:
    """A flush whose waiting is done elsewhere: `run` on any thread, then `finish` on the loop's."""

    __slots__ = (
        "_active",
        "_cuts",
        "_ended",
        "_epoch_writes",
        "_log",
        "_names_made",
        "_position",
        "_snapshots",
        "_sync",
        "upto",
    )

    def __init__(
        self,
        log: PartitionLog,
        upto: int,
        ended: Callable[[FlushJob, OSError | None], None] | None = None,
    ) -> None:
        """`ended` is told of the outcome after the log: somebody waits for it, the job must be run."""
        self._ended = ended
        self._log = log
        self.upto = upto
        self._cuts = log.cuts
        self._active, self._position = log.active, log.active.size
        self._snapshots = log.producers.unsynced.copy() if log.has_producers else []
        self._sync = log.local.flush_job(upto, log.leader_epochs.unsynced(), *self._snapshots)
        self._epoch_writes = log.leader_epochs.writes
        self._names_made = log.local.names_made

    def run(self) -> None:
        """Sync the files; raises OSError."""
        self._sync()

    def finish(self, error: OSError | None = None) -> None:
        """Take note of the outcome; a failed sync takes the log directory offline."""
        self._take_note(error)
        if self._ended is not None:
            self._ended(self, error)

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for the outcome."""
        return self._ended is not None

    def _take_note(self, error: OSError | None) -> None:
        log = self._log
        if log.closed or log.cuts != self._cuts:
            return  # it was about files that are no longer there
        if error is None:
            log.local.mark_flushed(self.upto, self._names_made)
            if self._snapshots:
                unsynced = log.producers.unsynced
                unsynced[:] = [path for path in unsynced if path not in self._snapshots]
            log.leader_epochs.synced(self._epoch_writes)
            if log.active is self._active:
                log.local.flushed_position = self._position
        else:
            log.directory.fail(error)

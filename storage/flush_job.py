"""Flushing a log without waiting on the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog


class FlushJob:
    """A flush whose waiting is done elsewhere: `run` on any thread, then `finish` on the loop's."""

    __slots__ = ("_log", "_sync", "upto")

    def __init__(self, log: PartitionLog, upto: int) -> None:
        self._log = log
        self.upto = upto
        self._sync = log.local.flush_job(upto)

    def run(self) -> None:
        """Sync the files; raises OSError."""
        self._sync()

    def finish(self, error: OSError | None = None) -> None:
        """Take note of the outcome; a failed sync takes the log directory offline."""
        if error is None:
            self._log.local.mark_flushed(self.upto)
        elif not self._log.closed:
            self._log.directory.fail(error)

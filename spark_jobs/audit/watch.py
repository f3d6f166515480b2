"""Looks at two topics while a job copies one to the other: how far behind it is, and how fast.

Counts offsets, which costs next to nothing: no record is read. So it compares how many there are, and the
audit at the end says whether they are the right ones. Lag is what the left holds more than the right; with
repeats, markers or compaction on one side only, that is an estimate.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from spark_jobs.plot import Series
from spark_jobs.progress import Batch, Progress

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Watch:
    """`left` and `right` tell how many offsets each side has by now."""

    left: Callable[[], int]
    right: Callable[[], int]
    every_s: float
    idle_s: float  # ends when nothing has come for so long, or the lag is nought
    file: Path | None = None
    series: Series = field(default_factory=lambda: Series("watch"))

    def run(self, stopped: Callable[[], bool]) -> None:
        """Until the right has caught up, nothing comes any more, or it is told to stop."""
        progress = Progress(self.file)
        pause = threading.Event()
        begun = before_at = grown_at = monotonic()
        before = self.right()
        number = 0
        while not stopped():
            now, left, right = monotonic(), self.left(), self.right()
            if right > before:
                grown_at = now
            seconds = max(now - before_at, 1e-3)
            time = datetime.now(UTC)
            batch = Batch(number, time.isoformat(), right - before, seconds, max(left - right, 0), {})
            progress.take(batch)
            self.series.add(time, batch.rate, batch.lag)
            if left <= right and number:
                return
            if now - grown_at >= self.idle_s:
                _log.info("nothing has come for %g s, %d records are missing", self.idle_s, left - right)
                return
            before, before_at = right, now
            number += 1
            pause.wait(max(0.0, begun + number * self.every_s - monotonic()))

"""How long the machine let this process stand still, so that it is not taken for the slowness of another.

A machine that runs many tests, or is one of many guests, gives a process no processor for a second now and
then. A thread that wants to wake up every 10 ms is late by as much. Being late by up to 50 ms is life.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

BEAT_S = 0.01
LATE_S = 0.05


class Pulse:
    """Counts the lateness of a beat. `now_s()` is a clock that stands still while this process must."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._seen = (0.0, 0.0)  # late so far, and from when on the next beat is late: read by other threads
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Pulse:
        self._seen = (0.0, time.perf_counter() + BEAT_S + LATE_S)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def now_s(self) -> float:
        """Seconds that this process could have run, from any start."""
        now_s = time.perf_counter()
        late_s, due_s = self._seen
        return now_s - late_s - max(now_s - due_s, 0.0)

    def _run(self) -> None:
        while not self._ended.wait(BEAT_S):
            now_s = time.perf_counter()
            late_s, due_s = self._seen
            self._seen = (late_s + max(now_s - due_s, 0.0), now_s + BEAT_S + LATE_S)

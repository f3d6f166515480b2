"""For work in a process of its own that must not be in anybody's way: low priority, and pauses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

NICENESS = 10
_lowered = False

monotonic = time.monotonic
"""Seconds that never go back."""

pause = time.sleep
"""Hold this process up for so many seconds; never in a process that serves clients."""


def start(work: Callable[[], None]) -> Callable[[], None]:
    """Begin work that waits for the disk; the call returned waits for its end and raises what it raised."""
    executor = ThreadPoolExecutor(1, thread_name_prefix="background")
    outcome = executor.submit(work)
    executor.shutdown(wait=False)
    return outcome.result


def at_once(work: Callable[[], None]) -> Callable[[], None]:
    """The same where nothing runs beside: the work is done here and now."""
    work()
    return lambda: None


def lower_priority() -> None:
    """Let processes that serve clients go first, from now on; once is enough."""
    global _lowered
    if not _lowered and hasattr(os, "nice"):
        _lowered = True
        os.nice(NICENESS)

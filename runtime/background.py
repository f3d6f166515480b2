"""For work in a process of its own that must not be in anybody's way: low priority, and pauses."""

from __future__ import annotations

import os
import time

NICENESS = 10
_lowered = False

monotonic = time.monotonic
"""Seconds that never go back."""

pause = time.sleep
"""Hold this process up for so many seconds; never in a process that serves clients."""


def lower_priority() -> None:
    """Let processes that serve clients go first, from now on; once is enough."""
    global _lowered
    if not _lowered and hasattr(os, "nice"):
        _lowered = True
        os.nice(NICENESS)

"""Keeps the bytes that cleaning reads and writes at log.cleaner.io.max.bytes.per.second.

Pure: it is told the time and says for how long to wait. As in Kafka it looks at what passed every 300 ms, and
a rate that nothing reaches costs nothing.
"""

from __future__ import annotations

CHECK_SECONDS = 0.3


class Throttle:
    """`bytes_per_second` may be infinite."""

    __slots__ = ("_since", "_taken", "bytes_per_second")

    def __init__(self, bytes_per_second: float, now: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._since = now
        self._taken = 0

    def took(self, size: int, now: float) -> float:
        """So many bytes passed; seconds to wait before the next, 0 for none."""
        self._taken += size
        passed = now - self._since
        if passed < CHECK_SECONDS:
            return 0.0
        due = self._taken / self.bytes_per_second
        wait = max(0.0, due - passed)
        self._since = now + wait
        self._taken = 0
        return wait

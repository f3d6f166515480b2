"""What happened in a run, as lines with a digest: two runs of a seed must give the same one.

A line is virtual time, place and event. Nothing in it may depend on addresses of objects, on the order of a
set or on the real clock. The last lines are kept for the report of a failure.
"""

from __future__ import annotations

import hashlib
from collections import deque

KEPT_LINES = 400


class Trace:
    """See the module. `lines` counts all that were noted."""

    def __init__(self, kept: int = KEPT_LINES) -> None:
        self.lines = 0
        self.marks: dict[str, int] = {}
        self._last: deque[str] = deque(maxlen=kept)
        self._hash = hashlib.blake2b(digest_size=16)

    def note(self, now_us: int, place: str, event: str) -> None:
        line = f"{now_us} {place} {event}\n"
        self.lines += 1
        self._last.append(line)
        self._hash.update(line.encode())

    def mark(self, name: str) -> None:
        """Count a rare thing that tests want to have seen."""
        self.marks[name] = self.marks.get(name, 0) + 1

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def tail(self, lines: int = 60) -> str:
        """The last lines, for people."""
        return "".join(list(self._last)[-lines:])

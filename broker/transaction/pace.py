"""How much of the work of ending transactions is done at a time.

A client may end hundreds of transactions on hundreds of partitions with a few kilobytes that arrive together,
and a broker that is gone may leave thousands behind whose markers cannot be written for now. Work has a
weight, the partitions that it writes to: at once no more is done than `AT_ONCE`, the rest in the next passes
of the loop; what failed is tried again after `RETRY_MS`, `AGAIN_AT_ONCE` at a time.

Invariants: work is done in the order in which it came; while any waits, a timer is set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from coordinator.ports import Timer

AT_ONCE: Final = 50
"""Markers in one pass of the loop; on this broker one takes 30 us, the first of a partition up to 450."""
RETRY_MS: Final = 100
AGAIN_AT_ONCE: Final = 500
"""Markers that are tried again in RETRY_MS, which takes up to a sixth of that time."""

Work = Callable[[], None]


class Pace:
    """See the module."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._room = AT_ONCE
        self._at_work = False
        self._soon: deque[tuple[int, Work]] = deque()
        self._next_is_set = False
        self._again: deque[tuple[int, Work]] = deque()
        self._retry_is_set = False

    def soon(self, weight: int, work: Work) -> None:
        """Do it now, or after what waits already."""
        self._soon.append((weight, work))
        if not self._at_work:
            self._go_on()

    def next(self, weight: int, work: Work) -> None:
        """Do it in the next pass, or after what waits already: so much was done in this one that it ends."""
        self._soon.append((weight, work))
        self._room = 0
        self._set_next()

    def again(self, weight: int, work: Work) -> None:
        """Do it a while later."""
        self._again.append((weight, work))
        if not self._retry_is_set:
            self._retry_is_set = True
            self._timer.add(RETRY_MS, self._retry)

    def _go_on(self) -> None:
        self._at_work = True  # what work leads to comes after it
        try:
            while self._soon and self._room > 0:
                weight, work = self._soon.popleft()
                self._room -= weight
                work()
        finally:
            self._at_work = False
            self._set_next()

    def _set_next(self) -> None:
        if not self._next_is_set:
            self._next_is_set = True
            self._timer.add(0, self._next)

    def _next(self) -> None:
        self._next_is_set = False
        self._room = AT_ONCE
        if self._soon:
            self._go_on()

    def _retry(self) -> None:
        room, left = AGAIN_AT_ONCE, len(self._again)
        while left and room > 0:  # what fails again meanwhile waits for the next time
            weight, work = self._again.popleft()
            left, room = left - 1, room - weight
            self.soon(weight, work)
        self._retry_is_set = bool(self._again)
        if self._retry_is_set:
            self._timer.add(RETRY_MS, self._retry)

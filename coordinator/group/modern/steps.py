"""Work that may take longer than one request may hold the loop: a generator that pauses, and who goes on with
it.

What is small is done at once, within the request that asked for it. What is not goes on beside requests, a
piece a turn of the timer, and its outcome comes by a call. It is measured by counting, not by the clock, so
that the same group takes the same way each time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, TypeAlias, TypeVar

from coordinator.result import CoordinatorError
from coordinator.timer import KeyedTimers

R = TypeVar("R")
Steps: TypeAlias = Generator[None, None, R]
"""Each `next` does a bounded piece of the work; the value that it returns is the outcome."""

PIECE: Final = 5000  # things that take about 1 us each
PIECES_AT_ONCE: Final = 2


class Pace:
    """Tells a generator when to pause."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = PIECE

    def over(self, things: int) -> bool:
        """So many things more were done. True where they fill a piece."""
        self._left -= things
        if self._left > 0:
            return False
        self._left = PIECE
        return True


def outcome(steps: Steps[R]) -> R:
    """What it comes to, without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            value: R = end.value
            return value


class LongWork:
    """What goes on for the groups of one protocol in one shard: one thing at a time for each group.

    With the shard's timers it ends at an unload.
    """

    def __init__(self, kind: str, timers: KeyedTimers) -> None:
        self._kind = kind
        self._timers = timers

    def goes_on(self, group_id: str) -> bool:
        """Whether something does for a group."""
        return (self._kind, group_id) in self._timers

    def begin(self, group_id: str, steps: Steps[R], late: Callable[[R], None]) -> R | None:
        """The outcome, if it is there soon; else None, and `late` gets it. What the first pieces raise comes
        through; a CoordinatorError of later ones ends the work, and whoever asks next begins anew.
        """
        try:
            for _ in range(PIECES_AT_ONCE):
                next(steps)
        except StopIteration as end:
            value: R = end.value
            return value
        self._go_on(group_id, steps, late)
        return None

    def forget(self, group_id: str) -> None:
        """The group has gone, or is not what the work was begun for."""
        self._timers.cancel((self._kind, group_id))

    def _go_on(self, group_id: str, steps: Steps[R], late: Callable[[R], None]) -> None:
        def step() -> None:
            try:
                next(steps)
            except StopIteration as end:
                late(end.value)
            except CoordinatorError:
                return
            else:
                self._go_on(group_id, steps, late)

        self._timers.set((self._kind, group_id), 0, step)

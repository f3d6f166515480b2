"""Writes of one thing that begin on the event loop and may end on threads: the one begun last is what stays.

A write is claimed where its contents are read, on the loop's thread, and run anywhere later. Runs take turns,
and one that a later claim has overtaken does nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Latest:
    """The writes of one thing, such as a checkpoint file."""

    __slots__ = ("_claimed", "_done", "_turn")

    def __init__(self) -> None:
        self._claimed = 0
        self._done = 0
        self._turn = threading.Lock()

    def claim(self, write: Callable[[], None]) -> Callable[[], None]:
        """The write, to be run once; raises what it raises, after which an earlier one may still run."""
        self._claimed += 1
        number = self._claimed

        def run() -> None:
            with self._turn:
                if number > self._done:
                    write()
                    self._done = number

        return run

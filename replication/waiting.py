"""Who waits for news of a partition: parked fetches, and requests with acks=all by their offsets."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

_log = logging.getLogger(__name__)


class Waiter(Protocol):
    """A request that is parked until a partition has news. It is hashable and compared by identity."""

    def wake(self) -> None:
        """Something changed: look again. The waiter first leaves all other places where it is parked."""


def wake_all(waiters: Iterable[Waiter], awaited: object) -> None:
    """Wake one after the other; one that fails is reported, and the others are woken all the same."""
    for waiter in waiters:
        try:
            waiter.wake()
        except Exception:
            _log.exception("A request that waited for %s failed", awaited)


class Commits:
    """Those that wait until the high watermark has passed an offset, in the order in which they came.

    That is the order of their offsets, but for retries of what was appended before: such a one waits with
    those in front of it. So a move of the high watermark costs what it commits, however many wait.
    """

    __slots__ = ("_last_offsets",)

    def __init__(self) -> None:
        self._last_offsets: OrderedDict[Waiter, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last_offsets)

    def add(self, waiter: Waiter, last_offset: int) -> None:
        """Wait for the commit of `last_offset`."""
        self._last_offsets[waiter] = last_offset

    def discard(self, waiter: Waiter) -> None:
        """It waits no more; no error if it did not."""
        self._last_offsets.pop(waiter, None)

    def take(self, high_watermark: int) -> list[Waiter]:
        """Remove and return those whose offset is committed now."""
        waiting = self._last_offsets
        committed: list[Waiter] = []
        while waiting:
            waiter, last_offset = next(iter(waiting.items()))
            if last_offset >= high_watermark:
                break
            del waiting[waiter]
            committed.append(waiter)
        return committed

    def take_all(self) -> list[Waiter]:
        """Remove and return everybody."""
        waiters = list(self._last_offsets)
        self._last_offsets.clear()
        return waiters

"""Deadlines of parked fetches, in buckets 10 ms wide.

Ten thousand consumers that poll an idle broker park and expire all the time. A timer for each would be a heap
operation for each; here a parked request is one entry of a dict, and the event loop has one call for each
bucket that is not empty. A request expires at the end of its bucket: never early, and at most 10 ms late. One
that fails is reported, and the others of its bucket expire all the same.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

WIDTH_MS = 10

_log = logging.getLogger(__name__)


class Expiring(Protocol):
    """A parked request. It is hashable and compared by identity."""

    def expire(self) -> None:
        """The time is over. The bucket has let go of the waiter already."""


Bucket = dict[Expiring, None]


class DeadlineBuckets:
    """All buckets of a broker. The bucket that `add` returns is the waiter's handle: `bucket.pop(waiter,
    None)` takes it out again, and costs nothing else.
    """

    __slots__ = ("_buckets", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._buckets: dict[int, Bucket] = {}

    def __len__(self) -> int:
        return sum(len(bucket) for bucket in self._buckets.values())

    def add(self, waiter: Expiring, wait_ms: int) -> Bucket:
        """Have `waiter.expire()` called when `wait_ms` have passed, unless it is taken out before."""
        deadline = int((self._loop.time() * 1000 + wait_ms) / WIDTH_MS) + 1
        bucket = self._buckets.get(deadline)
        if bucket is None:
            bucket = self._buckets[deadline] = {}
            self._loop.call_at(deadline * WIDTH_MS / 1000, self._expire, deadline)
        bucket[waiter] = None
        return bucket

    def _expire(self, deadline: int) -> None:
        bucket = self._buckets.pop(deadline)
        for waiter in list(bucket):
            if waiter in bucket:  # one that expires may take out another
                del bucket[waiter]
                try:
                    waiter.expire()
                except Exception:
                    _log.exception("A request whose waiting time is over failed")

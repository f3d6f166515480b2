"""Drops followers that lag from ISRs.

A follower that was about to join holds the high watermark, too, until it lags; no request tells of that, so
that it is looked at here.

Looked for every half of replica.lag.time.max.ms, so that it takes up to one and a half of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from replication.partition import Partition

AT_ONCE = 200


async def shrink_all(partitions: Callable[[], Iterable[Partition]]) -> int:
    """One look at all partitions that this broker leads; how many ISRs are to shrink.

    The loop gets its turn in between.
    """
    shrunk = 0
    for number, partition in enumerate(partitions(), 1):
        if partition.leadership is not None:
            shrunk += partition.leadership.shrink()
            partition.leadership.look()
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)
    return shrunk


async def expire(partitions: Callable[[], Iterable[Partition]], lag_max_ms: int) -> None:
    """For ever, as a task."""
    while True:
        await asyncio.sleep(lag_max_ms / 2000)
        await shrink_all(partitions)

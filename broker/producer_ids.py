"""Producer ids for idempotent producers, handed out from blocks that the metadata store remembers.

A block is persisted before its first id is given out, so an id never comes twice, whatever happens in
between; the rest of a block is lost with a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    """Gives out ids; `allocate` brings the next block as (first, how many)."""

    def __init__(self, allocate: Callable[[], Awaitable[tuple[int, int]]]) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._turn = asyncio.Lock()

    async def next_id(self) -> int:
        """A fresh id. Raises StoreError when a new block is needed and cannot be had."""
        while self._next >= self._end:
            async with self._turn:
                if self._next >= self._end:
                    first, count = await self._allocate()
                    self._next, self._end = first, first + count
        taken = self._next
        self._next += 1
        return taken

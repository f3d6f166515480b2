"""Producer ids for idempotent producers, handed out from blocks that the metadata store remembers.

A block is persisted before its first id is given out, so an id never comes twice, whatever happens in
between; the rest of a block is lost with a restart. When nine tenths of a block are used the next one is
asked for, so that nobody waits for it, and a controller may be away for a while. One that could not be had is
asked for again by whoever needs it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from replication.controller.outcomes import NoBlock
from replication.metadata.store import StoreError

PREFETCH_BELOW: Final = 0.1
"""The part of a block at which the next one is asked for."""

_log = logging.getLogger("ottla.producer_ids")

Block = tuple[int, int]


class ProducerIds:
    """Gives out ids; `allocate` brings the next block as (first, how many), `spawn` begins a named task."""

    def __init__(
        self,
        allocate: Callable[[], Awaitable[Block]],
        spawn: Callable[[str, Coroutine[Any, Any, None]], object],
    ) -> None:
        self._allocate = allocate
        self._spawn = spawn
        self._next = 0
        self._end = 0
        self._prefetch_at = 0
        self._prefetched: Block | None = None
        self._turn = asyncio.Lock()

    async def next_id(self) -> int:
        """A fresh id. Raises StoreError, NoBlock when a new block is needed and cannot be had."""
        while self._next >= self._end:
            async with self._turn:
                if self._next >= self._end:
                    self._begin(self._prefetched or await self._allocate())
        taken = self._next
        self._next += 1
        if taken == self._prefetch_at:
            self._spawn("a block of producer ids", self._prefetch())
        return taken

    def _begin(self, block: Block) -> None:
        first, count = block
        self._prefetched = None
        self._next, self._end = first, first + count
        self._prefetch_at = self._end - max(int(count * PREFETCH_BELOW), 1)

    async def _prefetch(self) -> None:
        async with self._turn:
            if self._next <= self._prefetch_at:
                return  # somebody needed it sooner, and has begun it
            try:
                self._prefetched = await self._allocate()
            except (StoreError, NoBlock) as error:
                _log.info("The next block of producer ids is not here yet: %s", error)

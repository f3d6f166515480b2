"""Generated ids of brokers."""

from __future__ import annotations

import asyncio

from replication.metadata.broker_ids import next_broker_id
from replication.metadata.memory_store import MemoryStore, MemoryTree


def test_ids_begin_above_the_reserved_ones_and_never_repeat():
    async def main():
        tree = MemoryTree()
        first, second = MemoryStore(tree), MemoryStore(tree)
        await first.open()
        await second.open()
        assert await next_broker_id(first, 1000) == 1001
        assert await next_broker_id(second, 1000) == 1002
        ids = await asyncio.gather(*(next_broker_id(store, 1000) for store in (first, second) * 3))
        assert sorted(ids) == [1003, 1004, 1005, 1006, 1007, 1008]

    asyncio.run(main())

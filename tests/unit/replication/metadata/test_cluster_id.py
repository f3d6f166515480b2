"""The cluster id is made once."""

from __future__ import annotations

import asyncio

from replication.metadata.cluster_id import ensure_cluster_id
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.store import Create, NodeExists


def test_the_first_proposal_is_kept_for_good():
    async def main():
        tree = MemoryTree()
        for proposed in ("first", "second"):
            store = MemoryStore(tree)
            await store.open()
            assert await ensure_cluster_id(store, proposed) == "first"
            await store.close()

    asyncio.run(main())


def test_another_broker_may_be_faster():
    class Raced(MemoryStore):
        async def create(self, path, value, ephemeral=False):
            if path == "/cluster/id":
                await self.multi([Create(path, b'{"version":"1","id":"theirs"}')])
                raise NodeExists(path)
            return await super().create(path, value, ephemeral)

    async def main():
        store = Raced()
        await store.open()
        assert await ensure_cluster_id(store, "mine") == "theirs"

    asyncio.run(main())

"""Several sessions with one tree, which only the memory store has so far."""

from __future__ import annotations

import asyncio

import pytest

from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.store import Create, SessionEvent, SessionExpired, WatchEvent


def test_ephemeral_nodes_go_with_their_session_and_others_hear_of_it():
    async def main():
        tree = MemoryTree()
        first, second = MemoryStore(tree), MemoryStore(tree)
        await first.open()
        await second.open()
        await first.multi([Create("/ids", b""), Create("/ids/1", b"", ephemeral=True)])
        await second.create("/ids/2", b"", ephemeral=True)
        heard = []
        second.watch("/ids", lambda path, event: heard.append((path, event)))
        second.watch("/ids/1", lambda path, event: heard.append((path, event)))
        first.expire()
        assert await second.children("/ids") == ["2"]
        assert heard == [("/ids/1", WatchEvent.DELETED), ("/ids", WatchEvent.CHILDREN)]

    asyncio.run(main())


def test_an_expired_session_is_told_and_must_open_again():
    async def main():
        store = MemoryStore()
        events = []
        cancel = store.on_session(events.append)
        await store.open()
        store.expire()
        assert events == [SessionEvent.CONNECTED, SessionEvent.EXPIRED]
        with pytest.raises(SessionExpired):
            await store.get("/")
        cancel()
        await store.open()
        assert len(events) == 2

    asyncio.run(main())


def test_a_session_hears_of_the_changes_of_another():
    async def main():
        tree = MemoryTree()
        first, second = MemoryStore(tree), MemoryStore(tree)
        await first.open()
        await second.open()
        heard = []
        second.watch("/a", lambda path, event: heard.append(event))
        await first.create("/a", b"")
        assert heard == [WatchEvent.CREATED]

    asyncio.run(main())

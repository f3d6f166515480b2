"""Calls that are made again until an answer comes."""

from __future__ import annotations

import asyncio

import pytest

from replication.metadata.memory_store import MemoryStore
from replication.metadata.retry import outlasting, retried
from replication.metadata.store import BadVersion, SessionExpired


def test_a_call_is_made_again_when_the_connection_is_back():
    async def main():
        store = MemoryStore()
        await store.open()
        await store.create("/a", b"1")
        store.suspend()
        reading = asyncio.ensure_future(retried(store, lambda: store.get("/a")))
        await asyncio.sleep(0)
        assert not reading.done()
        store.resume()
        assert (await reading).value == b"1"

    asyncio.run(main())


def test_a_refusal_is_an_answer():
    async def main():
        store = MemoryStore()
        await store.open()
        await store.create("/a", b"1")
        with pytest.raises(BadVersion):
            await retried(store, lambda: store.put("/a", b"2", 5))

    asyncio.run(main())


def test_nothing_is_carried_over_into_another_session():
    async def main():
        store = MemoryStore()
        await store.open()
        store.suspend()
        writing = asyncio.ensure_future(retried(store, lambda: store.create("/a", b"1")))
        await asyncio.sleep(0)
        store.expire()
        with pytest.raises(SessionExpired):
            await writing
        await store.open()
        assert await store.get("/a") is None

    asyncio.run(main())


def test_what_belongs_to_no_session_goes_on_in_the_next_one():
    async def main():
        store = MemoryStore()
        await store.open()
        store.suspend()
        writing = asyncio.ensure_future(outlasting(store, lambda: store.create("/a", b"1")))
        await asyncio.sleep(0)
        store.expire()
        await asyncio.sleep(0)
        assert not writing.done()
        await store.open()
        await writing
        assert (await store.get("/a")).value == b"1"

    asyncio.run(main())

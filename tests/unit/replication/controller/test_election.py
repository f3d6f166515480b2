"""Who becomes the controller."""

from __future__ import annotations

import asyncio

import pytest

from replication.controller import election
from replication.metadata import controller_payloads, paths
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.store import ConnectionLost, SessionExpired


async def session(tree: MemoryTree) -> MemoryStore:
    store = MemoryStore(tree)
    await store.open()
    return store


async def at_once() -> None:
    await asyncio.sleep(0)


def test_the_first_controller_has_epoch_one():
    async def story():
        store = await session(MemoryTree())
        won = await election.stand(store, 7, 123, at_once)
        value = controller_payloads.encode_controller(7, 123)
        assert won == election.Won(1, 1, value)
        assert (await store.get(paths.CONTROLLER)).value == value
        assert (await store.get(paths.CONTROLLER_EPOCH))[:2] == (b"1", 1)

    asyncio.run(story())


def test_of_two_candidates_one_wins_and_the_epoch_rises_by_one():
    async def story():
        tree = MemoryTree()
        first, second = await session(tree), await session(tree)
        outcomes = await asyncio.gather(
            election.stand(first, 1, 0, at_once), election.stand(second, 2, 0, at_once)
        )
        assert [outcome is not None for outcome in outcomes] == [True, False]
        assert tree.nodes[paths.CONTROLLER_EPOCH].value == b"1"
        await first.close()
        won = await election.stand(second, 2, 0, at_once)
        assert (won.epoch, won.epoch_version) == (2, 2)

    asyncio.run(story())


def test_a_candidate_that_read_an_older_epoch_tries_anew():
    async def story():
        tree = MemoryTree()
        store, other = await session(tree), await session(tree)
        await store.create(paths.CONTROLLER_EPOCH, b"4")
        multi = store.multi

        async def late(operations):
            store.multi = multi
            await other.put(paths.CONTROLLER_EPOCH, b"5")  # elected and gone again in between
            return await multi(operations)

        store.multi = late
        won = await election.stand(store, 1, 0, at_once)
        assert (won.epoch, won.epoch_version) == (6, 2)

    asyncio.run(story())


@pytest.mark.parametrize("applied", [True, False])
def test_a_lost_answer_is_recognised(applied):
    async def story():
        store = await session(MemoryTree())
        multi = store.multi

        async def lost(operations):
            store.multi = multi
            if applied:
                await multi(operations)
            raise ConnectionLost(paths.CONTROLLER)

        await store.create(paths.CONTROLLER_EPOCH, b"0")
        store.multi = lost
        won = await election.stand(store, 1, 0, at_once)
        assert (won.epoch, won.epoch_version) == (1, 1)
        assert store.tree.nodes[paths.CONTROLLER_EPOCH].value == b"1"

    asyncio.run(story())


def test_a_lost_answer_to_an_election_that_another_broker_won():
    async def story():
        tree = MemoryTree()
        store, other = await session(tree), await session(tree)
        multi = store.multi

        async def lost(operations):
            store.multi = multi
            await election.stand(other, 2, 0, at_once)
            raise ConnectionLost(paths.CONTROLLER)

        await store.create(paths.CONTROLLER_EPOCH, b"0")
        store.multi = lost
        assert await election.stand(store, 1, 0, at_once) is None

    asyncio.run(story())


def test_the_end_of_the_session_is_told():
    async def story():
        store = await session(MemoryTree())
        store.expire()
        with pytest.raises(SessionExpired):
            await election.stand(store, 1, 0, at_once)

    asyncio.run(story())

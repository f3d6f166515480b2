"""Ids from blocks, also when many ask at once."""

from __future__ import annotations

import asyncio

import pytest

from broker.producer_ids import ProducerIds
from replication.controller.outcomes import NoBlock


class Controller:
    """Gives blocks of `size` ids with gaps between them; `failures` are raised first."""

    def __init__(self, size: int, *failures: Exception) -> None:
        self.size, self.failures = size, list(failures)
        self.blocks: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.ids = ProducerIds(self.allocate, self.spawn)

    async def allocate(self) -> tuple[int, int]:
        if self.failures:
            raise self.failures.pop(0)
        self.blocks.append(1000 * len(self.blocks))
        first = self.blocks[-1]
        await asyncio.sleep(0)
        return first, self.size

    def spawn(self, name, coroutine):
        self.tasks.append(asyncio.get_running_loop().create_task(coroutine))

    async def take(self, count: int) -> list[int]:
        return [await self.ids.next_id() for _ in range(count)]

    async def settled(self) -> None:
        while self.tasks:
            await self.tasks.pop()


def test_ids_are_unique_and_blocks_are_used_up() -> None:
    async def main() -> None:
        controller = Controller(3)
        ids = await asyncio.gather(*(controller.ids.next_id() for _ in range(7)))
        assert ids == [0, 1, 2, 1000, 1001, 1002, 2000]
        await controller.settled()
        assert controller.blocks == [0, 1000, 2000]

    asyncio.run(main())


def test_the_next_block_is_there_before_it_is_needed() -> None:
    async def main() -> None:
        controller = Controller(20)
        assert await controller.take(18) == list(range(18))
        await controller.settled()
        assert controller.blocks == [0]
        await controller.take(1)
        await controller.settled()
        assert controller.blocks == [0, 1000]
        assert await controller.take(2) == [19, 1000]
        await controller.settled()
        assert controller.blocks == [0, 1000]

    asyncio.run(main())


def test_a_failed_allocation_is_told_and_tried_again() -> None:
    async def main() -> None:
        controller = Controller(5, OSError("no store"))
        with pytest.raises(OSError, match="no store"):
            await controller.ids.next_id()
        assert await controller.ids.next_id() == 0

    asyncio.run(main())


def test_a_block_that_could_not_be_had_early_is_asked_for_when_it_is_needed() -> None:
    async def main() -> None:
        controller = Controller(10)
        await controller.take(9)
        controller.failures.append(NoBlock("no controller"))
        assert await controller.take(1) == [9]
        await controller.settled()
        assert controller.blocks == [0]
        assert await controller.take(1) == [1000]

    asyncio.run(main())

"""Ids from blocks, also when many ask at once."""

from __future__ import annotations

import asyncio

import pytest

from broker.producer_ids import ProducerIds


def test_ids_are_unique_and_blocks_are_used_up() -> None:
    blocks: list[int] = []

    async def allocate() -> tuple[int, int]:
        blocks.append(10 * len(blocks))
        first = blocks[-1]
        await asyncio.sleep(0)
        return first, 3

    async def main() -> list[int]:
        ids = ProducerIds(allocate)
        return await asyncio.gather(*(ids.next_id() for _ in range(7)))

    assert asyncio.run(main()) == [0, 1, 2, 10, 11, 12, 20]
    assert blocks == [0, 10, 20]


def test_a_failed_allocation_is_told_and_tried_again() -> None:
    failures = [OSError("no store")]

    async def allocate() -> tuple[int, int]:
        if failures:
            raise failures.pop()
        return 5, 1

    async def main() -> int:
        ids = ProducerIds(allocate)
        with pytest.raises(OSError, match="no store"):
            await ids.next_id()
        return await ids.next_id()

    assert asyncio.run(main()) == 5

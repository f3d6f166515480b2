"""Turns of long work: one piece in a pass of the loop, first come, first served."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from runtime.pieces import Pieces


def test_one_piece_in_a_pass_whoever_it_belongs_to() -> None:
    done: list[str] = []

    async def work(pieces: Pieces, name: str, count: int) -> None:
        for _ in range(count):
            await pieces.turn()
            done.append(name)

    async def main() -> list[int]:
        pieces = Pieces()
        tasks = [asyncio.ensure_future(work(pieces, name, 3)) for name in "abc"]
        sizes = []
        while not all(task.done() for task in tasks):
            before = len(done)
            await asyncio.sleep(0)
            sizes.append(len(done) - before)
        return sizes

    assert max(asyncio.run(main())) == 1
    assert "".join(done) == "abcabcabc"


def test_who_is_cancelled_takes_no_turn() -> None:
    done: list[int] = []

    async def work(pieces: Pieces, number: int) -> None:
        await pieces.turn()
        done.append(number)

    async def main() -> None:
        pieces = Pieces()
        tasks = [asyncio.ensure_future(work(pieces, number)) for number in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        await work(pieces, 3)

    asyncio.run(main())
    assert done == [0, 2, 3]


def test_things_come_in_pieces_and_few_of_them_at_once() -> None:
    async def main() -> None:
        pieces = Pieces()
        assert [list(some) async for some in pieces.of(range(5), at_once=2)] == [[0, 1], [2, 3], [4]]
        assert [some async for some in pieces.of([1, 2], at_once=2)] == [[1, 2]]

    asyncio.run(main())

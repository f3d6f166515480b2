"""Work for many things, with pauses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker.handlers.later import Later
from broker.handlers.paced import paced
from runtime.pieces import Pieces


def test_few_things_are_done_at_once() -> None:
    done: list[int] = []
    assert paced(Pieces(), [1, 2], done.append, lambda: sum(done), at_once=2) == 3


def test_many_are_done_in_pieces() -> None:
    done: list[Any] = []

    async def main() -> Any:
        pieces = Pieces()
        first = asyncio.ensure_future(paced(pieces, [1, 2, 3], done.append, lambda: "all", at_once=2))
        other = asyncio.ensure_future(paced(pieces, [7, 8, 9], done.append, lambda: "too", at_once=2))
        return await first, await other

    assert asyncio.run(main()) == ("all", "too")
    assert done == [1, 2, 7, 8, 3, 9]


def test_an_answer_that_comes_later_is_waited_for() -> None:
    later = Later()

    async def main() -> Any:
        asyncio.get_running_loop().call_later(0, later.give, "late")
        return await paced(Pieces(), [1, 2], lambda _: None, later.now_or_later, at_once=1)

    assert asyncio.run(main()) == "late"


def test_what_fails_fails_the_answer() -> None:
    async def main() -> Any:
        return await paced(Pieces(), ["1", "x"], int, lambda: "all", at_once=1)

    with pytest.raises(ValueError, match="'x'"):
        asyncio.run(main())

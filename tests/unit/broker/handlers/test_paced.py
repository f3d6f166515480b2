"""Work for many things, with pauses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker.handlers.later import Later
from broker.handlers.paced import paced


def test_few_things_are_done_at_once() -> None:
    done: list[int] = []
    assert paced([1, 2], done.append, lambda: sum(done), at_once=2) == 3


def test_between_many_others_have_their_turn() -> None:
    done: list[Any] = []

    async def main() -> Any:
        asyncio.get_running_loop().call_soon(done.append, "other")
        return await paced([1, 2, 3], done.append, lambda: "all", at_once=2)

    assert asyncio.run(main()) == "all"
    assert done == [1, 2, "other", 3]


def test_an_answer_that_comes_later_is_waited_for() -> None:
    later = Later()

    async def main() -> Any:
        asyncio.get_running_loop().call_later(0, later.give, "late")
        return await paced([1, 2], lambda _: None, later.now_or_later, at_once=1)

    assert asyncio.run(main()) == "late"


def test_what_fails_fails_the_answer() -> None:
    async def main() -> Any:
        return await paced(["1", "x"], int, lambda: "all", at_once=1)

    with pytest.raises(ValueError, match="'x'"):
        asyncio.run(main())

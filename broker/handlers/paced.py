"""Requests that name tens of thousands of things: what there is to do for each is done with pauses for
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from broker.handlers.later import Later

AT_ONCE: Final = 1000
"""Things that take up to 10 us each."""

T = TypeVar("T")


def paced(
    things: Sequence[T], work: Callable[[T], object], answer: Callable[[], Any], at_once: int = AT_ONCE
) -> Any:
    """Do `work` for each of the things, then give what `answer` gives: a response, or a `Later`.

    A coroutine where there are more than `at_once`, with a pause behind as many.
    """
    if len(things) > at_once:
        return _with_pauses(things, work, answer, at_once)
    for each in things:
        work(each)
    return answer()


async def _with_pauses(
    things: Sequence[T], work: Callable[[T], object], answer: Callable[[], Any], at_once: int
) -> Any:
    for at in range(0, len(things), at_once):
        for each in things[at : at + at_once]:
            work(each)
        await asyncio.sleep(0)
    answered = answer()
    return await answered.response() if isinstance(answered, Later) else answered

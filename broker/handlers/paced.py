"""Requests that name tens of thousands of things: what there is to do for each is done in pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from broker.handlers.later import Later
from runtime.pieces import AT_ONCE, Pieces

T = TypeVar("T")


def paced(
    pieces: Pieces,
    things: Sequence[T],
    work: Callable[[T], object],
    answer: Callable[[], Any],
    at_once: int = AT_ONCE,
) -> Any:
    """Do `work` for each of the things, then give what `answer` gives: a response, or a `Later`.

    A coroutine where there are more than `at_once`, with a pause before as many.
    """
    if len(things) > at_once:
        return _with_pauses(pieces, things, work, answer, at_once)
    for each in things:
        work(each)
    return answer()


async def _with_pauses(
    pieces: Pieces,
    things: Sequence[T],
    work: Callable[[T], object],
    answer: Callable[[], Any],
    at_once: int,
) -> Any:
    async for some in pieces.of(things, at_once):
        for each in some:
            work(each)
    answered = answer()
    return await answered.response() if isinstance(answered, Later) else answered

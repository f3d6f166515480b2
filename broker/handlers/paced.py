"""Requests that name tens of thousands of things: what there is to do for each is done in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar

from broker.handlers.later import Later
from runtime.pieces import AT_ONCE, Pieces, split

T = TypeVar("T")


def paced(
    pieces: Pieces,
    things: Sequence[T],
    work: Callable[[T], object],
    answer: Callable[[], Any],
    at_once: int = AT_ONCE,
    weigh: Callable[[T], int] | None = None,
) -> Any:
    """Do `work` for each of the things, then give what `answer` gives: a response, or a `Later`.

    A coroutine where there are more than `at_once`, with a pause before as many. `weigh` tells for how many a
    thing counts, where that is not one.
    """
    runs = split(things, at_once) if weigh is None else _runs(things, at_once, weigh)
    first = next(runs, None)
    second = next(runs, None)
    if second is not None:
        return _with_pauses(pieces, chain((first or (), second), runs), work, answer)
    for each in first or ():
        work(each)
    return answer()


def _runs(things: Iterable[T], at_once: int, weigh: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """The things of one piece after the other; one that is too much by itself is a piece of its own."""
    run: list[T] = []
    total = 0
    for each in things:
        weight = weigh(each)
        if run and total + weight > at_once:
            yield run
            run, total = [], 0
        run.append(each)
        total += weight
    if run:
        yield run


async def _with_pauses(
    pieces: Pieces, runs: Iterable[Sequence[T]], work: Callable[[T], object], answer: Callable[[], Any]
) -> Any:
    for run in runs:
        await pieces.turn()
        for each in run:
            work(each)
    answered = answer()
    return await answered.response() if isinstance(answered, Later) else answered

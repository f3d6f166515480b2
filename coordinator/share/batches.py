"""Runs of offsets with a delivery state, and what becomes of them when newer ones arrive.

The rule is Kafka's, and does not depend on the order of arrival: of all runs over an offset the one with the
highest delivery count decides, then the one with the highest state; offsets below the start are forgotten;
neighbours that say the same become one run.

Invariant: what `merged` returns ascends, does not overlap, and has no two neighbours that say the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

NO_START: Final = -1
"""A start offset that nobody has decided yet; nothing lies below it."""


class StateBatch(NamedTuple):
    """Neighbouring records, `last_offset` inclusive, in one state (0 available, 2 acknowledged, 4 archived)
    and delivered so many times.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


Batches: TypeAlias = tuple[StateBatch, ...]


def merged(kept: Batches, new: Sequence[StateBatch], start_offset: int) -> Batches:
    """What is kept once `new` has arrived; `kept` is a result of this function.

    Only runs that `new` reaches or touches are looked at, as thousands may be kept. Runs of `new` that end
    before they begin count for nothing.
    """
    kept = _pruned(kept, start_offset)
    added = [
        each if each.first_offset >= start_offset else each._replace(first_offset=start_offset)
        for each in new
        if max(each.first_offset, start_offset) <= each.last_offset
    ]
    if not added:
        return kept
    first = min(each.first_offset for each in added) - 1
    last = max(each.last_offset for each in added) + 1
    low = bisect_left(kept, first, key=lambda each: each.last_offset)
    high = bisect_right(kept, last, key=lambda each: each.first_offset)
    return kept[:low] + tuple(_sweep([*kept[low:high], *added])) + kept[high:]


def normal(batches: Sequence[StateBatch]) -> Batches:
    """Runs that come from elsewhere, as `merged` leaves them."""
    return merged((), batches, NO_START)


def _pruned(kept: Batches, start_offset: int) -> Batches:
    low = bisect_left(kept, start_offset, key=lambda each: each.last_offset)
    kept = kept[low:]
    if kept and kept[0].first_offset < start_offset:
        kept = (kept[0]._replace(first_offset=start_offset), *kept[1:])
    return kept


def _sweep(batches: Iterable[StateBatch]) -> list[StateBatch]:
    """From left to right over all ends of runs; `open_runs` has the one that decides on top."""
    ordered = sorted(batches)
    edges = sorted({offset for each in ordered for offset in (each.first_offset, each.last_offset + 1)})
    result: list[StateBatch] = []
    open_runs: list[tuple[int, int, int]] = []  # count and state, negative, and the last offset
    taken = 0
    for edge, next_edge in pairwise(edges):
        while taken < len(ordered) and ordered[taken].first_offset == edge:
            _, last, state, count = ordered[taken]
            heappush(open_runs, (-count, -state, last))
            taken += 1
        while open_runs and open_runs[0][2] < edge:
            heappop(open_runs)
        if not open_runs:
            continue
        count, state = -open_runs[0][0], -open_runs[0][1]
        before = result[-1] if result else None
        if before is not None and before[1:] == (edge - 1, state, count):
            result[-1] = before._replace(last_offset=next_edge - 1)
        else:
            result.append(StateBatch(edge, next_edge - 1, state, count))
    return result

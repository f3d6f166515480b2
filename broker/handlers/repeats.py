"""Names that a request repeats: Kafka answers each time, and so do we, to a bound.

What is told of one large group would otherwise be told ten thousand times in one answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final, TypeVar

REPEATS_MAX: Final = 2  # 32 MiB of members (coordinator.group.room) take 90 to tell

T = TypeVar("T", bound=Hashable)


def bounded(names: Iterable[T]) -> list[T]:
    """The names in their order; of one that stands there more than REPEATS_MAX times the first ones."""
    times: Counter[T] = Counter()
    kept = []
    for name in names:
        times[name] += 1
        if times[name] <= REPEATS_MAX:
            kept.append(name)
    return kept

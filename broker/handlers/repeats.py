"""Names that a request repeats: Kafka answers each time, and so do we, to a bound.

What is told of one large group would otherwise be told ten thousand times in one answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

REPEATS_MAX: Final = 2  # 32 MiB of members (coordinator.group.room) take 90 to tell


def bounded(names: Iterable[str]) -> list[str]:
    """The names in their order; of one that stands there more than REPEATS_MAX times the first ones."""
    times: Counter[str] = Counter()
    kept = []
    for name in names:
        times[name] += 1
        if times[name] <= REPEATS_MAX:
            kept.append(name)
    return kept

"""Letting go of what an unloaded partition held.

To free a hundred thousand values takes 20 to 60 ms, wherever the last reference to them is given up; so that
is done for some of them at a time, between turns of the loop.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator.timer import KeyedTimers

FREED_AT_ONCE: Final = 5_000


def free(rows: dict[Any, dict[Any, Any]], timers: KeyedTimers) -> None:
    """Empty a table's rows, which nobody else has any more: some of its cells now, the others by and by."""
    left = FREED_AT_ONCE
    while rows and left > 0:
        outer, row = rows.popitem()
        if len(row) > left:
            for _ in range(left):
                row.popitem()
            rows[outer] = row
            break
        left -= len(row)
    if rows:
        timers.set(("freed", id(rows)), 0, lambda: free(rows, timers))

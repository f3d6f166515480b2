"""Rows that are let go of some at a time."""

from __future__ import annotations

from coordinator.freeing import FREED_AT_ONCE, free
from coordinator.timer import KeyedTimers
from tests.unit.coordinator.memory_topic import VirtualTime


def test_little_is_freed_at_once() -> None:
    timers = KeyedTimers(VirtualTime())
    rows = {"a": {0: "x", 1: "y"}, "b": {0: "z"}}
    free(rows, timers)
    assert (rows, len(timers)) == ({}, 0)


def test_much_is_freed_by_and_by() -> None:
    time = VirtualTime()
    timers = KeyedTimers(time)
    rows = {"few": dict.fromkeys(range(10)), "many": dict.fromkeys(range(2 * FREED_AT_ONCE + 1))}
    others = {number: {"": number} for number in range(FREED_AT_ONCE + 10)}
    free(rows, timers)
    free(others, timers)
    assert [len(row) for row in rows.values()] == [10, FREED_AT_ONCE + 1]
    assert len(others) == 10
    time.advance(2)
    time.advance(2)
    assert (len(rows), len(others), len(timers)) == (0, 0, 0)

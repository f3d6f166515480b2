"""Hierarchical timing wheel: O(1) insert and cancel however many timers wait.

Shape as in Kafka: ticks of 1 ms, 20 buckets for each wheel, and wheels of 20 times the span on top when a
delay needs them (20 ms, 400 ms, 8 s, ...). A bucket is a dict, so that an entry leaves it in O(1). Only
buckets sit in the heap of deadlines, each once; when the deadline of an upper bucket comes, its entries
fall into finer ones.

`TimerWheel` is pure: time comes in as `now_ms` (monotonic) and due entries go out. `LoopTimer` drives one
from an event loop with a single armed wake-up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

TICK_MS = 1
WHEEL_SIZE = 20


class TimerEntry:
    """One pending call. It knows its bucket; without one it has run or was cancelled."""

    __slots__ = ("bucket", "callback", "deadline_ms", "due")

    def __init__(self, callback: Callable[[], None], deadline_ms: int) -> None:
        self.callback = callback
        self.deadline_ms = deadline_ms
        self.bucket: _Bucket | None = None
        self.due = False

    @property
    def pending(self) -> bool:
        return self.bucket is not None or self.due

    def cancel(self) -> bool:
        """Take the call back; False if it has run or was cancelled before."""
        if self.bucket is not None:
            del self.bucket.entries[self]
            self.bucket.wheel.timer.size -= 1
            self.bucket = None
            return True
        was_due, self.due = self.due, False
        return was_due

    def fire(self) -> None:
        """Run the call, unless it was cancelled after it became due."""
        if self.due:
            self.due = False
            self.callback()


class _Bucket:
    __slots__ = ("deadline_ms", "entries", "wheel")

    def __init__(self, wheel: _Wheel) -> None:
        self.wheel = wheel
        self.entries: dict[TimerEntry, None] = {}
        self.deadline_ms = -1  # start of the span it stands for now; -1 while it is not in the heap


class _Wheel:
    __slots__ = ("buckets", "interval_ms", "overflow", "tick_ms", "timer")

    def __init__(self, timer: TimerWheel, tick_ms: int) -> None:
        self.timer = timer
        self.tick_ms = tick_ms
        self.interval_ms = tick_ms * WHEEL_SIZE
        self.buckets = [_Bucket(self) for _ in range(WHEEL_SIZE)]
        self.overflow: _Wheel | None = None


class TimerWheel:
    """The pure wheel. `size` is the number of entries that neither ran nor were cancelled."""

    def __init__(self, now_ms: int) -> None:
        self.size = 0
        self.now_ms = now_ms
        self._lowest = _Wheel(self, TICK_MS)
        self._heap: list[tuple[int, int, _Bucket]] = []
        self._pushed = 0  # breaks ties in the heap by age

    def add(self, delay_ms: int, callback: Callable[[], None]) -> TimerEntry:
        """Have `callback` called `delay_ms` after the last `advance`; at least a tick."""
        entry = TimerEntry(callback, self.now_ms + max(delay_ms, TICK_MS))
        self.size += 1
        self._place(entry)
        return entry

    def next_deadline_ms(self) -> int | None:
        """When `advance` should be called next: the start of the earliest bucket that holds something."""
        heap = self._heap
        while heap and not heap[0][2].entries:
            heappop(heap)[2].deadline_ms = -1
        return heap[0][0] if heap else None

    def advance(self, now_ms: int) -> list[TimerEntry]:
        """Set the time and take out the entries whose deadline has come, in the order of deadlines.

        The caller calls `fire` on each; until then an entry can still be cancelled.
        """
        due: list[TimerEntry] = []
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            deadline_ms, _, bucket = heappop(heap)
            bucket.deadline_ms = -1
            self.now_ms = max(self.now_ms, deadline_ms)
            entries, bucket.entries = bucket.entries, {}
            for entry in entries:
                if entry.deadline_ms <= self.now_ms:
                    entry.bucket = None
                    entry.due = True
                    due.append(entry)
                else:
                    self._place(entry)
        self.size -= len(due)
        self.now_ms = max(self.now_ms, now_ms)
        return due

    def _place(self, entry: TimerEntry) -> None:
        wheel, now_ms = self._lowest, self.now_ms
        while entry.deadline_ms >= now_ms - now_ms % wheel.tick_ms + wheel.interval_ms:
            if wheel.overflow is None:
                wheel.overflow = _Wheel(self, wheel.interval_ms)
            wheel = wheel.overflow
        slot = entry.deadline_ms // wheel.tick_ms
        bucket = wheel.buckets[slot % WHEEL_SIZE]
        deadline_ms = slot * wheel.tick_ms
        if bucket.deadline_ms != deadline_ms:
            assert not bucket.entries, "a bucket of the wheel stands for two spans at once"
            bucket.deadline_ms = deadline_ms
            self._pushed += 1
            heappush(self._heap, (deadline_ms, self._pushed, bucket))
        bucket.entries[entry] = None
        entry.bucket = bucket


class LoopTimer:
    """A wheel on an event loop. Callbacks run on the loop and must not raise."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._wheel = TimerWheel(self._now_ms())
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0

    @property
    def size(self) -> int:
        return self._wheel.size

    def add(self, delay_ms: int, callback: Callable[[], None]) -> TimerEntry:
        """Have `callback` called on the loop in `delay_ms` or up to a tick later."""
        wheel = self._wheel
        lag_ms = self._now_ms() - wheel.now_ms  # the wheel's time stands still between two wake-ups
        entry = wheel.add(max(delay_ms, 0) + lag_ms + TICK_MS, callback)
        self._arm()
        return entry

    def close(self) -> None:
        """Disarm; what is pending never runs."""
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _arm(self) -> None:
        deadline_ms = self._wheel.next_deadline_ms()
        if self._armed is not None:
            if deadline_ms is not None and self._armed_ms <= deadline_ms:
                return
            self._armed.cancel()
            self._armed = None
        if deadline_ms is not None:
            self._armed_ms = deadline_ms
            self._armed = self._loop.call_at(deadline_ms / 1000, self._wake)

    def _wake(self) -> None:
        self._armed = None
        self._fire(deque(self._wheel.advance(self._now_ms())))

    def _fire(self, due: deque[TimerEntry]) -> None:
        try:
            while due:
                due.popleft().fire()
        finally:  # one that raises in spite of its contract stops neither the clock nor the others
            if due:
                self._loop.call_soon(self._fire, due)
            self._arm()

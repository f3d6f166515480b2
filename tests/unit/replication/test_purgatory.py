"""Delayed operations: completed once."""

from __future__ import annotations

from replication.purgatory import DelayedOperation
from runtime.timer import TimerWheel


class Clockwork:
    """A wheel that a test turns."""

    def __init__(self):
        self.wheel = TimerWheel(0)

    def add(self, delay_ms, callback):
        return self.wheel.add(delay_ms, callback)

    def advance(self, now_ms):
        for entry in self.wheel.advance(now_ms):
            entry.fire()


class Operation(DelayedOperation):
    __slots__ = ("completable", "events")

    def __init__(self, clockwork, timeout_ms=1000):
        super().__init__(timeout_ms)
        self.completable, self.events = False, []
        self._wait(clockwork, lambda: self.events.append("ended"))

    def try_complete(self):
        return self.force_complete() if self.completable else False

    def on_complete(self):
        self.events.append("complete")


def test_a_try_completes_what_can_be_completed_and_once():
    clockwork = Clockwork()
    operation = Operation(clockwork)
    assert not operation.try_complete()
    operation.completable = True
    assert operation.try_complete()
    assert not operation.try_complete()
    assert not operation.force_complete()
    clockwork.advance(5000)
    assert operation.events == ["ended", "complete"]
    assert clockwork.wheel.size == 0


def test_when_the_time_is_over_it_completes():
    clockwork = Clockwork()
    early, late = Operation(clockwork, 100), Operation(clockwork, 300)
    clockwork.advance(99)
    assert early.events == []
    clockwork.advance(200)
    assert (early.events, late.events) == (["ended", "complete"], [])
    early.completable = True
    assert not early.try_complete()


def test_one_that_never_waited_needs_no_timer():
    class Ready(DelayedOperation):
        __slots__ = ("done",)

        def try_complete(self):
            return self.force_complete()

        def on_complete(self):
            self.done = True

    operation = Ready(1000)
    assert operation.force_complete()
    assert operation.done

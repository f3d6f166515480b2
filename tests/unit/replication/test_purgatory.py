"""Delayed operations: completed once, never lost."""

from __future__ import annotations

import pytest

from replication.purgatory import DelayedOperation, Purgatory
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
    __slots__ = ("completable", "events", "tries")

    def __init__(self, timeout_ms=1000):
        super().__init__(timeout_ms)
        self.completable, self.events, self.tries = False, [], 0

    def try_complete(self):
        self.tries += 1
        return self.force_complete() if self.completable else False

    def on_complete(self):
        self.events.append("complete")

    def on_expiration(self):
        self.events.append("expired")


@pytest.fixture
def clockwork():
    return Clockwork()


def test_check_completes_what_can_be_completed_and_once(clockwork):
    purgatory = Purgatory(clockwork)
    first, second = Operation(), Operation()
    assert purgatory.check_and_complete("key") == 0
    assert not purgatory.try_complete_else_watch(first, ["test1"])
    assert first.tries == 2
    assert not purgatory.try_complete_else_watch(second, ["test2"])
    assert purgatory.check_and_complete("test1") == 0
    first.completable = True
    assert purgatory.check_and_complete("test1") == 1
    assert purgatory.check_and_complete("test1") == 0
    second.completable = True
    assert purgatory.check_and_complete("test2") == 1
    assert first.events == second.events == ["complete"]
    assert purgatory.delayed == purgatory.watched == clockwork.wheel.size == 0


def test_an_operation_that_can_complete_is_never_watched(clockwork):
    purgatory = Purgatory(clockwork)
    operation = Operation()
    operation.completable = True
    assert purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert operation.tries == 1
    assert purgatory.watched == purgatory.delayed == 0


def test_what_happens_between_the_try_and_the_registration_is_not_lost(clockwork):
    purgatory = Purgatory(clockwork)

    class Late(Operation):
        __slots__ = ()

        def try_complete(self):
            done = super().try_complete()
            self.completable = True
            return done

    operation = Late()
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.events == ["complete"]
    assert purgatory.delayed == clockwork.wheel.size == 0


def test_no_keys_is_an_error(clockwork):
    with pytest.raises(ValueError, match="at least one key"):
        Purgatory(clockwork).try_complete_else_watch(Operation(), [])


def test_counts_of_delayed_and_watched(clockwork):
    purgatory = Purgatory(clockwork)
    operations = [Operation() for _ in range(3)]
    for number, operation in enumerate(operations):
        purgatory.try_complete_else_watch(operation, [f"test{i}" for i in range(1, number + 2)])
    assert (purgatory.delayed, purgatory.watched) == (3, 6)
    operations[1].force_complete()
    operations[2].force_complete()
    assert (purgatory.delayed, purgatory.watched) == (1, 6)
    left = []
    for key in ("test1", "test2", "test3"):
        assert purgatory.check_and_complete(key) == 0
        left.append(purgatory.watched)
    assert left == [4, 2, 1]


def test_expiry_completes_and_then_expires_once(clockwork):
    purgatory = Purgatory(clockwork)
    early, late, done = Operation(100), Operation(300), Operation(100)
    for operation in (early, late, done):
        purgatory.try_complete_else_watch(operation, ["a"])
    done.force_complete()
    clockwork.advance(99)
    assert early.events == []
    clockwork.advance(200)
    assert early.events == ["complete", "expired"]
    assert done.events == ["complete"]
    assert late.events == []
    assert not early.force_complete()
    early.completable = True
    assert purgatory.check_and_complete("a") == 0
    assert (purgatory.delayed, purgatory.watched) == (1, 1)


def test_completed_entries_are_purged_when_many_have_gathered(clockwork):
    purgatory = Purgatory(clockwork, purge_interval=10)
    for number in range(12):
        operation = Operation()
        purgatory.try_complete_else_watch(operation, ["busy", number])
        operation.force_complete()
        assert purgatory.watched <= 2 + 10 + 2
    assert purgatory.delayed == 0


def test_an_operation_that_completes_others_from_within(clockwork):
    purgatory = Purgatory(clockwork)
    second = Operation()

    class First(Operation):
        __slots__ = ()

        def on_complete(self):
            super().on_complete()
            second.completable = True
            purgatory.check_and_complete("a")

    first = First()
    purgatory.try_complete_else_watch(first, ["a"])
    purgatory.try_complete_else_watch(second, ["a"])
    first.completable = True
    assert purgatory.check_and_complete("a") == 1
    assert first.events == second.events == ["complete"]
    assert (purgatory.delayed, purgatory.watched) == (0, 0)

"""Keyed timers."""

from coordinator.timer import KeyedTimers
from tests.unit.coordinator.memory_topic import VirtualTime


def test_a_timer_rings_once_and_is_gone() -> None:
    time, rung = VirtualTime(), []
    timers = KeyedTimers(time)
    timers.set("a", 10, lambda: rung.append("a"))
    time.advance(9)
    assert "a" in timers
    assert rung == []
    time.advance(1)
    assert "a" not in timers
    assert rung == ["a"]
    time.advance(100)
    assert rung == ["a"]


def test_setting_a_key_again_replaces_its_timer() -> None:
    time, rung = VirtualTime(), []
    timers = KeyedTimers(time)
    timers.set("a", 10, lambda: rung.append("first"))
    timers.set("a", 20, lambda: rung.append("second"))
    assert len(timers) == 1
    time.advance(50)
    assert rung == ["second"]


def test_a_ringing_timer_may_set_its_own_key() -> None:
    time, rung = VirtualTime(), []
    timers = KeyedTimers(time)

    def ring() -> None:
        rung.append(time.now_ms())
        timers.set("a", 10, ring)

    timers.set("a", 10, ring)
    time.advance(10)
    time.advance(10)
    assert len(rung) == 2
    assert "a" in timers


def test_cancelled_timers_do_not_ring() -> None:
    time, rung = VirtualTime(), []
    timers = KeyedTimers(time)
    for key in "abc":
        timers.set(key, 10, lambda: rung.append("?"))
    timers.cancel("b")
    timers.cancel("never set")
    timers.cancel_all()
    time.advance(20)
    assert rung == []
    assert len(timers) == 0

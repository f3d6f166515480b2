"""Sessions that heartbeats only push forward."""

from __future__ import annotations

from coordinator.group.modern.sessions import Sessions
from coordinator.timer import KeyedTimers
from tests.unit.coordinator.memory_topic import VirtualTime


class Watched:
    def __init__(self) -> None:
        self.time = VirtualTime()
        self.timers = KeyedTimers(self.time)
        self.members = {("g", "a")}
        self.over: list[tuple[str, str]] = []
        self.sessions = Sessions(
            "s", self.timers, self.time, lambda *key: key in self.members, lambda *key: self.over.append(key)
        )


def test_a_session_ends_its_timeout_after_the_last_sign_of_life() -> None:
    watched = Watched()
    watched.sessions.renew("g", "a", 1000)
    watched.time.advance(900)
    watched.sessions.renew("g", "a", 1000)
    assert len(watched.timers) == 1
    watched.time.advance(900)
    assert watched.over == []
    watched.time.advance(100)
    assert watched.over == [("g", "a")]
    assert (len(watched.timers), len(watched.sessions)) == (0, 0)


def test_a_shorter_timeout_counts_at_once() -> None:
    watched = Watched()
    watched.sessions.renew("g", "a", 5000)
    watched.sessions.renew("g", "a", 1000)
    watched.time.advance(1000)
    assert watched.over == [("g", "a")]


def test_who_has_gone_is_not_told_of() -> None:
    watched = Watched()
    watched.sessions.renew("g", "a", 1000)
    watched.members.clear()
    watched.time.advance(1000)
    assert (watched.over, len(watched.sessions)) == ([], 0)


def test_forgetting() -> None:
    watched = Watched()
    watched.sessions.renew("g", "a", 1000)
    watched.sessions.clear()
    assert len(watched.sessions) == 0

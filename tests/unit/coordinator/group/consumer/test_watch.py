"""Deadlines of rebalances."""

from __future__ import annotations

from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.play import GROUP, Play


def told_to_revoke(timeout_ms: int = 10_000) -> tuple:
    play = Play()
    a, b = play.client("a", "t", rebalance_timeout_ms=timeout_ms), play.client("b", "t")
    a.join()
    a.obey()
    b.join()
    assert a.beat(owned=a.has).member_epoch == 2
    return play, a, b


def test_a_member_that_beats_but_does_not_revoke_is_removed() -> None:
    play, a, b = told_to_revoke()
    for _ in range(3):
        play.advance(3_000)
        assert a.beat(owned=a.has).error_code == E.NONE
    play.advance(1_000)
    assert a.beat(owned=a.has).error_code == E.UNKNOWN_MEMBER_ID
    b.beat()
    assert b.partitions() == [0, 1, 2, 3]


def test_who_has_revoked_in_time_stays() -> None:
    play, a, _ = told_to_revoke()
    play.advance(9_000)
    assert a.sync().member_epoch == 3
    play.advance(20_000)
    assert list(play.tables.members.row(GROUP)) == ["a", "b"]


def test_each_revocation_has_its_own_time() -> None:
    play, a, b = told_to_revoke()
    play.advance(9_000)
    a.sync()
    b.beat()
    c = play.client("c", "t")
    c.join()
    d = play.client("d", "t")
    d.join()
    a.beat(owned=a.has)
    assert play.tables.current.get(GROUP, "a").revoking
    play.advance(9_000)
    assert a.beat(owned=a.has).error_code == E.NONE
    play.advance(1_000)
    assert a.beat().error_code == E.UNKNOWN_MEMBER_ID

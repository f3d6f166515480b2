"""What events say by themselves."""

from __future__ import annotations

from coordinator.group.classic.events import JoinGroup


def join(rebalance_timeout_ms: int) -> JoinGroup:
    return JoinGroup(1, 0, "", 9000, rebalance_timeout_ms, "consumer", (("range", b""),))


def test_version_0_has_no_rebalance_timeout_and_uses_the_session_timeout() -> None:
    assert join(-1).rebalance_timeout_ms == 9000


def test_a_rebalance_timeout_that_is_given_stays() -> None:
    assert join(60_000).rebalance_timeout_ms == 60_000

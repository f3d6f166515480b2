"""Defaults of what share groups need from around them."""

from __future__ import annotations

from coordinator.group.share.ports import ShareSettings, Summary
from protocol.errors import ErrorCode


def test_kafkas_defaults() -> None:
    settings = ShareSettings()
    assert settings.max_size == 200
    assert settings.session_timeout_ms("g") == 45_000
    assert settings.heartbeat_interval_ms("g") == 5_000
    assert settings.assignment_interval_ms("g") == 1_000
    assert settings.initialize_retry_ms == 30_000


def test_a_partition_nothing_is_known_of() -> None:
    assert Summary() == (ErrorCode.NONE, -1, 0, -1)

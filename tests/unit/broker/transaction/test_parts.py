"""What a broker has to do with transactions is imported when it is needed."""

from __future__ import annotations

from pathlib import Path

from tests.support.handler_broker import HandlerBroker


def test_there_is_one_verifier(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        parts = broker.ctx.transactions
        assert parts.verifier is parts.verifier
        assert parts.coordinator.coordinator_of("t") == -1

"""The ends of partitions."""

from __future__ import annotations

from pathlib import Path

from broker.adapters.latest_offsets import ReplicaLatestOffsets
from protocol.errors import ErrorCode
from tests.support.handler_broker import HandlerBroker


def test_the_high_watermark_or_why_there_is_none(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        broker.create("t")
        broker.produce("t", 0, [(1, b"a"), (2, b"b")])
        latest = ReplicaLatestOffsets(broker.ctx.replicas)
        assert latest.latest("t", 0) == 2
        assert latest.latest("t", 1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

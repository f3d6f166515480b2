"""A share partition to play with: shorthand for what its tests say all the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from replication.share.acknowledge import Ack
from replication.share.acquire import AcquiredRange, Wish
from replication.share.log_batches import LogBatch
from replication.share.ports import Limits, ShareState, StateBatch
from replication.share.share_partition import SharePartition

LIMITS = Limits(lock_duration_ms=1000, delivery_count_limit=5, max_record_locks=200)


def share(start: int = 0, *kept: StateBatch, limits: Limits = LIMITS) -> SharePartition:
    found = SharePartition(lambda: limits)
    found.load(ShareState(3, start, kept), start)
    return found


def log(*spans: tuple[int, int]) -> list[LogBatch]:
    return [LogBatch(first, last, 100 * number, 100) for number, (first, last) in enumerate(spans)]


def take(
    found: SharePartition, batches: list[LogBatch], now_ms: int = 0, **wish: Any
) -> Sequence[AcquiredRange]:
    fields = {"member": "ann", "fetch_offset": found.next_offset(), "max_records": 500, "batch_size": 500}
    return found.acquire(Wish(**{**fields, **wish}), batches, now_ms).ranges


def say(
    found: SharePartition, first: int, last: int, *types: int, member: str = "ann", now_ms: int = 0
) -> list[StateBatch]:
    transition = found.acknowledge(member, [Ack(first, last, types)], now_ms, True)
    kept = found.state_batches(transition)
    found.commit(transition)
    return kept

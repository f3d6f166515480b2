"""When committed offsets are dropped for age (KIP-211).

The time counts from the moment a group became empty; where there is no such moment (groups without a
protocol, topics that a living group no longer reads) from each commit. An offset with an expiry time of its
own (OffsetCommit 2 to 4) follows that alone. An offset that an open transaction may still move stays, and so
does everything of a group whose subscriptions are unknown or in motion.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.group.offsets import Offsets, TopicPartition
from coordinator.group.records import NO_EXPIRY, Offset

UNKNOWN_TIME = -1


@dataclass(slots=True)
class Expiry:
    """What may expire in a group. `since_ms` -1: count from each commit.

    `kept_topics` are being read and never expire.
    """

    since_ms: int = UNKNOWN_TIME
    kept_topics: frozenset[str] = frozenset()


def expiry_of(
    protocol_type: str | None, *, empty: bool, stable: bool, since_ms: int, topics: frozenset[str] | None
) -> Expiry | None:
    """The rule for a classic group; None: nothing of it expires now.

    `since_ms` is when it entered its state (-1 unknown), `topics` what its members subscribe to (None: not
    known). A group of offsets alone has no protocol type.
    """
    if not protocol_type:
        return Expiry()
    if empty:
        return Expiry(since_ms)
    if protocol_type == "consumer" and stable and topics is not None:
        return Expiry(kept_topics=topics)
    return None


def is_expired(offset: Offset, topic: str, rule: Expiry, now_ms: int, retention_ms: int) -> bool:
    """Whether a rule drops an offset now."""
    if topic in rule.kept_topics:
        return False
    if offset.expire_ms != NO_EXPIRY:
        return now_ms >= offset.expire_ms
    base_ms = offset.commit_ms if rule.since_ms == UNKNOWN_TIME else rule.since_ms
    return now_ms - base_ms >= retention_ms


def expired(
    offsets: Offsets, group: str, rule: Expiry, now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """The partitions whose offset is over. Those with a pending offset stay."""
    return [
        (topic, partition)
        for (topic, partition), stored in offsets.committed.row(group).items()
        if is_expired(Offset._make(stored), topic, rule, now_ms, retention_ms)
        and not offsets.is_pending(group, topic, partition)
    ]

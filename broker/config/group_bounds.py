"""Rules between the group.* keys, in Kafka's order and words; it checks them at start and on dynamic changes.

What is in force for a kind of groups lies between the bounds of what single groups may set, a member can miss
a heartbeat without losing its session, and bounds are not upside down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from broker.config.broker_config import BrokerConfig

NOT_BELOW: Final = "greater than or equal to"
NOT_ABOVE: Final = "less than or equal to"
BELOW: Final = "less than"


class Order(NamedTuple):
    """How the value of one key stands to that of another."""

    key: str
    relation: str
    other: str


def _between(kind: str, name: str) -> Iterator[Order]:
    value, low, high = f"group.{kind}.{name}", f"group.{kind}.min.{name}", f"group.{kind}.max.{name}"
    yield Order(high, NOT_BELOW, low)
    yield Order(value, NOT_BELOW, low)
    yield Order(value, NOT_ABOVE, high)


def _of_kind(kind: str) -> Iterator[Order]:
    heartbeat, session = "heartbeat.interval.ms", "session.timeout.ms"
    yield from _between(kind, heartbeat)
    yield from _between(kind, session)
    yield Order(f"group.{kind}.{heartbeat}", BELOW, f"group.{kind}.{session}")
    yield from _between(kind, "assignment.interval.ms")


ORDERS: Final = (
    Order("group.share.max.delivery.count.limit", NOT_BELOW, "group.share.delivery.count.limit"),
    Order("group.share.delivery.count.limit", NOT_BELOW, "group.share.min.delivery.count.limit"),
    Order("group.share.max.partition.max.record.locks", NOT_BELOW, "group.share.partition.max.record.locks"),
    Order("group.share.partition.max.record.locks", NOT_BELOW, "group.share.min.partition.max.record.locks"),
    Order("group.share.record.lock.duration.ms", NOT_BELOW, "group.share.min.record.lock.duration.ms"),
    Order("group.share.max.record.lock.duration.ms", NOT_BELOW, "group.share.record.lock.duration.ms"),
    Order("group.share.max.share.sessions", NOT_BELOW, "group.share.max.size"),
    *_of_kind("consumer"),
    *_of_kind("share"),
    *_of_kind("streams"),
    Order("group.streams.num.standby.replicas", NOT_ABOVE, "group.streams.max.standby.replicas"),
    Order("group.streams.task.offset.interval.ms", NOT_BELOW, "group.streams.min.task.offset.interval.ms"),
    Order("group.streams.num.warmup.replicas", NOT_ABOVE, "group.streams.max.warmup.replicas"),
)


def broken_orders(config: BrokerConfig) -> list[str]:
    """A text for each rule that the configuration breaks."""
    problems = [
        f"{key} must be {relation} {other}"
        for key, relation, other in ORDERS
        if not _holds(config.integer(key), relation, config.integer(other))
    ]
    assignors = config.names("group.share.assignors")
    if len(assignors) != 1:
        problems.append(
            f"group.share.assignors must contain exactly one assignor, but found {len(assignors)}"
        )
    return problems


def _holds(value: int, relation: str, other: int) -> bool:
    if relation == NOT_BELOW:
        return value >= other
    return value <= other if relation == NOT_ABOVE else value < other

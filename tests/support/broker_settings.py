"""A setting of a broker that is changed while it runs: Apache Kafka answers first, and then lets it count."""

from __future__ import annotations

from collections.abc import Callable

from protocol import messages as m
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

BROKER = 4  # the type of the resource


def setting(wire: WireClient, key: str) -> str | None:
    """What counts at the broker at hand; None too for a key without a default that has not come to count."""
    describe = m.DescribeConfigsRequest
    [me] = wire.metadata().brokers
    resource = describe.DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(me.node_id), configuration_keys=[key]
    )
    [result] = wire.send(describe(resources=[resource]), 4).results
    assert result.error_code == 0, result
    entry = next(iter(result.configs), None)
    return None if entry is None or entry.value is None else str(entry.value)


def await_effect(condition: Callable[[], bool]) -> None:
    """Until what was acknowledged counts."""
    wait_until(condition, "what was acknowledged to count")


def await_setting(wire: WireClient, key: str, value: str) -> None:
    """Until a value counts at the only broker."""
    wait_until(lambda: setting(wire, key) == value, f"{key}={value}")

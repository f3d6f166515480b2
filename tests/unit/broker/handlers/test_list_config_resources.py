"""ListConfigResources: protocol.md 4.5, LR1."""

from __future__ import annotations

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.alterations import DELETE, SET, alter


def listed(broker: HandlerBroker, version: int, *kinds: int) -> tuple[int, list[tuple[str, int]]]:
    answer = broker.call(m.ListConfigResourcesRequest(resource_types=list(kinds)), version)
    return answer.error_code, [(each.resource_name, each.resource_type) for each in answer.config_resources]


def test_v0_lists_client_metrics_only(broker: HandlerBroker) -> None:
    broker.create("t")
    assert listed(broker, 0) == (0, [])
    assert alter(broker, 16, "a b/c", ("metrics", SET, "x")) == (0, None)
    assert listed(broker, 0) == listed(broker, 1, 16) == (0, [("a b/c", 16)])
    assert alter(broker, 16, "a b/c", ("metrics", DELETE, None)) == (0, None)
    assert listed(broker, 0) == (0, [])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((), (0, [("1", 8), ("1", 4), ("t", 2)])),
        ((2,), (0, [("t", 2)])),
        ((4,), (0, [("1", 4)])),
        ((2, 8, 2), (0, [("t", 2), ("1", 8)])),
        ((16, 32), (0, [])),
        ((2, 64), (35, [])),
    ],
)
def test_v1_by_type(broker: HandlerBroker, kinds: tuple[int, ...], expected: object) -> None:
    broker.create("t")
    assert listed(broker, 1, *kinds) == expected

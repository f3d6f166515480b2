"""FindCoordinator before there are coordinators."""

from __future__ import annotations

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize("key_type", [0, 1])
def test_no_coordinator_is_available(broker: HandlerBroker, version: int, key_type: int) -> None:
    if version < 1:
        key_type = 0
    keys = {"coordinator_keys": ["a", "b"]} if version >= 4 else {"key": "a"}
    answer = broker.call(m.FindCoordinatorRequest(key_type=key_type, **keys), version)
    found = answer.coordinators if version >= 4 else [answer]
    assert [(one.error_code, one.node_id, one.host, one.port) for one in found] == [(15, -1, "", -1)] * len(
        found
    )
    assert len(found) == (2 if version >= 4 else 1)
    if version >= 4:
        assert [one.key for one in found] == ["a", "b"]


@pytest.mark.parametrize(("key_type", "version", "error"), [(3, 6, 42), (-1, 6, 42), (2, 5, 42), (2, 6, 15)])
def test_key_types(broker: HandlerBroker, key_type: int, version: int, error: int) -> None:
    request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a"])
    assert [one.error_code for one in broker.call(request, version).coordinators] == [error]

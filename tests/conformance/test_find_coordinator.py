"""FindCoordinator for groups, and the topic that it makes."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import messages as m
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

TOPIC = "__consumer_offsets"
NOWHERE = (-1, "", -1)


def ask(wire: WireClient, version: int, *keys: str, key_type: int = 0) -> list[Any]:
    """One answer for each key, whatever the version."""
    if version >= 4:
        request = m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        return list(wire.send(request, version).coordinators)
    return [wire.send(m.FindCoordinatorRequest(key_type=key_type, key=key), version) for key in keys]


@pytest.fixture
def found(wire: WireClient) -> WireClient:
    """A broker that has made the topic; Kafka answers 15 until it has."""
    wait_until(lambda: ask(wire, 4, "g")[0].error_code == 0, "a coordinator")
    return wire


@pytest.mark.parametrize("version", range(7))
def test_a_group_has_a_coordinator_at_the_listener_that_was_asked(found: WireClient, version: int) -> None:
    [broker] = found.metadata().brokers
    keys = ("g", "", "grüppe") if version >= 4 else ("g",)
    answers = ask(found, version, *keys)
    for key, one in zip(keys, answers, strict=True):
        assert (one.error_code, one.node_id, one.host, one.port) == (
            0,
            broker.node_id,
            broker.host,
            broker.port,
        )
        if version >= 4:
            assert one.key == key
        assert one.error_message == ("NONE" if 1 <= version < 4 else "")


def test_the_topic_is_internal_and_compacted(found: WireClient) -> None:
    [topic] = found.metadata(TOPIC).topics
    assert (topic.error_code, topic.is_internal) == (0, True)
    request = m.DescribeConfigsRequest
    resource = request.DescribeConfigsResource(resource_type=2, resource_name=TOPIC)
    [answer] = found.send(request(resources=[resource]), 4).results
    changed = {each.name: each.value for each in answer.configs if each.config_source == 1}
    assert changed == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


@pytest.mark.parametrize("version", range(7))
def test_unknown_key_types(wire: WireClient, version: int) -> None:
    for key_type in [2, 3, -1] if version in (4, 5) else [3, -1]:
        if version >= 1:
            [one] = ask(wire, version, "g", key_type=key_type)
            assert (one.error_code, one.node_id, one.host, one.port) == (42, *NOWHERE)


def test_no_keys_no_answers(wire: WireClient) -> None:
    assert ask(wire, 4) == []

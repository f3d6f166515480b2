"""Resources whose configuration can be altered here."""

from __future__ import annotations

import pytest

from broker.handlers.config_resources import by_resource, check_node, stored_resource
from protocol.errors import ErrorCode
from replication.controller.outcomes import ConfigOutcome, Refused
from replication.metadata.configs import ConfigResource, ConfigType
from tests.support.handler_broker import HandlerBroker


def test_topics_brokers_and_subscriptions_are_stored(broker: HandlerBroker) -> None:
    assert stored_resource(broker.ctx, 2, "t") == ConfigResource(ConfigType.TOPIC, "t")
    assert stored_resource(broker.ctx, 4, "") == ConfigResource(ConfigType.BROKER, "")
    assert stored_resource(broker.ctx, 4, "1") == ConfigResource(ConfigType.BROKER, "1")
    assert stored_resource(broker.ctx, 16, "a b/c") == ConfigResource(ConfigType.CLIENT_METRICS, "a b/c")
    assert stored_resource(broker.ctx, 32, "a b/c") == ConfigResource(ConfigType.GROUP, "a b/c")


@pytest.mark.parametrize(("kind", "name"), [(8, "1"), (16, ""), (32, ""), (99, ""), (2, ""), (4, "2")])
def test_others_are_refused(broker: HandlerBroker, kind: int, name: str) -> None:
    with pytest.raises(Refused) as refused:
        stored_resource(broker.ctx, kind, name)
    assert refused.value.error == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["", "-1", "1.0", "\u0661"])
def test_a_node_is_named_by_its_number(broker: HandlerBroker, name: str) -> None:
    with pytest.raises(Refused, match="must be an integer"):
        check_node(broker.ctx, name, "Unexpected")


def test_outcomes_by_resource() -> None:
    resource = ConfigResource(ConfigType.TOPIC, "t")
    outcome = ConfigOutcome(resource)
    assert by_resource([outcome]) == {resource: outcome}

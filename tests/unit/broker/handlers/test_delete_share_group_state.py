"""DeleteShareGroupState. Side by side with Kafka: tests/conformance/test_share_state.py."""

from __future__ import annotations

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.share_requests import ask, initialize

Request = m.DeleteShareGroupStateRequest


def test_what_is_deleted_is_gone_and_what_is_not_there_is_deleted(broker: HandlerBroker) -> None:
    initialize(broker)
    results = ask(broker, Request, {}, {"partition": 1}, {"partition": 2})
    assert [(each.partition, each.error_code) for each in results] == [(0, 0), (1, 0), (2, 3)]
    assert ask(broker, m.ReadShareGroupStateRequest, {})[0].error_code == 42

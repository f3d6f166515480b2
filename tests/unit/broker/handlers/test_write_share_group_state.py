"""WriteShareGroupState. Side by side with Kafka: tests/conformance/test_share_state.py."""

from __future__ import annotations

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.share_requests import ask, initialize

Request = m.WriteShareGroupStateRequest


@pytest.mark.parametrize(("version", "complete"), [(0, 0), (1, 4)])
def test_what_is_written_is_kept(broker: HandlerBroker, version: int, complete: int) -> None:
    initialize(broker)
    batch = Request.StateBatch(first_offset=2, last_offset=5, delivery_state=2, delivery_count=3)
    [result] = ask(broker, Request, {"delivery_complete_count": 4, "state_batches": [batch]}, version=version)
    assert (result.error_code, result.error_message) == (0, None)
    [found] = ask(broker, m.ReadShareGroupStateRequest, {})
    assert found.state_batches == [
        m.ReadShareGroupStateResponse.StateBatch(
            first_offset=2, last_offset=5, delivery_state=2, delivery_count=3
        )
    ]
    [shown] = ask(broker, m.ReadShareGroupStateSummaryRequest, {}, version=1)
    assert shown.delivery_complete_count == complete


def test_a_refusal_changes_nothing(broker: HandlerBroker) -> None:
    initialize(broker, state_epoch=1, start_offset=5)
    [result] = ask(broker, Request, {"start_offset": 9, "state_epoch": 0})
    assert result.error_code == 124
    assert ask(broker, m.ReadShareGroupStateRequest, {})[0].start_offset == 5

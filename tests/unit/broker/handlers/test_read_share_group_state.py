"""ReadShareGroupState. Side by side with Kafka: tests/conformance/test_share_state.py."""

from __future__ import annotations

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.share_requests import ask, initialize

Request = m.ReadShareGroupStateRequest
Result = m.ReadShareGroupStateResponse.PartitionResult


def test_state_and_refusal(broker: HandlerBroker) -> None:
    initialize(broker, state_epoch=4, start_offset=11)
    assert ask(broker, Request, {"leader_epoch": 2}, {"partition": 1}) == [
        Result(partition=0, state_epoch=4, start_offset=11),
        Result(
            partition=1,
            error_code=42,
            error_message="Read operation on uninitialized share partition not allowed.",
        ),
    ]
    [fenced] = ask(broker, Request, {"leader_epoch": 1})
    assert (fenced.error_code, fenced.start_offset) == (74, 0)

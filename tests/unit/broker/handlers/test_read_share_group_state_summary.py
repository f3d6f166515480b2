"""ReadShareGroupStateSummary. Side by side with Kafka: tests/conformance/test_share_state.py."""

from __future__ import annotations

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.share_requests import ask, initialize

Request = m.ReadShareGroupStateSummaryRequest
Result = m.ReadShareGroupStateSummaryResponse.PartitionResult


@pytest.mark.parametrize(("version", "complete"), [(0, -1), (1, 0)])
def test_where_share_partitions_stand(broker: HandlerBroker, version: int, complete: int) -> None:
    initialize(broker, state_epoch=4, start_offset=11)
    ask(broker, m.ReadShareGroupStateRequest, {"leader_epoch": 7})
    assert ask(broker, Request, {"leader_epoch": 1}, {"partition": 1}, version=version) == [
        Result(partition=0, state_epoch=4, leader_epoch=7, start_offset=11, delivery_complete_count=complete),
        Result(partition=1, start_offset=-1),
    ]

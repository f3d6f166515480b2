"""ReadShareGroupStateSummary (87), versions 0-1: where share partitions stand, without what is in flight.

v1: how many records from the start on are done with (KIP-1226).
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.request import Request
from broker.handlers.share_state_answers import answer
from coordinator.share.manager import Done
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer
from protocol import messages as m

_Response = m.ReadShareGroupStateSummaryResponse


def handle(ctx: BrokerContext, request: Request[m.ReadShareGroupStateSummaryRequest]) -> Any:
    """A result for each partition; the leader epoch of the request plays no part."""
    manager = ctx.share_state.manager()

    def ask(key: ShareKey, _: Any, done: Done) -> None:
        manager.summary(key, done)

    def respond(results: list[tuple[bytes, list[_Response.PartitionResult]]]) -> _Response:
        return _Response(
            results=[
                _Response.ReadStateSummaryResult(topic_id=topic_id, partitions=found)
                for topic_id, found in results
            ]
        )

    return answer(ctx.pieces, request.body, "read share group state summary", ask, _show, respond)


def _show(partition: int, told: Answer) -> _Response.PartitionResult:
    result = _Response.PartitionResult(partition=partition, error_code=told.error, error_message=told.message)
    if (state := told.state) is not None:
        result.state_epoch, result.leader_epoch = state.state_epoch, state.leader_epoch
        result.start_offset, result.delivery_complete_count = state.start_offset, state.complete_count
    return result

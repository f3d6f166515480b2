"""ReadShareGroupState (84), version 0: leaders of share partitions read their state when they begin."""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.request import Request
from broker.handlers.share_state_answers import answer
from coordinator.share.manager import Done
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer
from protocol import messages as m

_Response = m.ReadShareGroupStateResponse
_Asked = m.ReadShareGroupStateRequest.PartitionData


def handle(ctx: BrokerContext, request: Request[m.ReadShareGroupStateRequest]) -> Any:
    """A result for each partition; a higher leader epoch is written down before it."""
    manager = ctx.share_state.manager()

    def ask(key: ShareKey, asked: _Asked, done: Done) -> None:
        manager.read(key, asked.leader_epoch, done)

    def respond(results: list[tuple[bytes, list[_Response.PartitionResult]]]) -> _Response:
        return _Response(
            results=[
                _Response.ReadStateResult(topic_id=topic_id, partitions=found) for topic_id, found in results
            ]
        )

    return answer(ctx.pieces, request.body, "read share group state", ask, _show, respond)


def _show(partition: int, told: Answer) -> _Response.PartitionResult:
    result = _Response.PartitionResult(partition=partition, error_code=told.error, error_message=told.message)
    if (state := told.state) is not None:
        result.state_epoch, result.start_offset = state.state_epoch, state.start_offset
        result.state_batches = [_Response.StateBatch(**each._asdict()) for each in state.batches]
    return result

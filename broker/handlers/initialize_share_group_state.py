"""InitializeShareGroupState (83), version 0: group coordinators begin the state of share partitions."""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.request import Request
from broker.handlers.share_state_answers import gather
from coordinator.share.manager import Done
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer
from protocol import messages as m

_Response = m.InitializeShareGroupStateResponse
_Asked = m.InitializeShareGroupStateRequest.PartitionData


def handle(ctx: BrokerContext, request: Request[m.InitializeShareGroupStateRequest]) -> Any:
    """A result for each partition. A topic without partitions is passed over here, unlike in the others."""
    body = request.body
    manager = ctx.share_state.manager()

    def ask(key: ShareKey, asked: _Asked, done: Done) -> None:
        manager.initialize(key, asked.state_epoch, asked.start_offset, done)

    def show(partition: int, told: Answer) -> _Response.PartitionResult:
        return _Response.PartitionResult(
            partition=partition, error_code=told.error, error_message=told.message
        )

    def respond(results: list[tuple[bytes, list[_Response.PartitionResult]]]) -> _Response:
        return _Response(
            results=[
                _Response.InitializeStateResult(topic_id=topic_id, partitions=found)
                for topic_id, found in results
            ]
        )

    topics = body.topics if body.group_id else []
    return gather(ctx.pieces, body.group_id, topics, "initialize share group state", ask, show, respond)

"""DeleteShareGroupState (86), version 0: group coordinators end share partitions."""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.request import Request
from broker.handlers.share_state_answers import answer
from coordinator.share.manager import Done
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer
from protocol import messages as m

_Response = m.DeleteShareGroupStateResponse


def handle(ctx: BrokerContext, request: Request[m.DeleteShareGroupStateRequest]) -> Any:
    """A result for each partition; what is not there is deleted already."""
    manager = ctx.share_state.manager()

    def ask(key: ShareKey, _: Any, done: Done) -> None:
        manager.delete(key, done)

    def respond(results: list[tuple[bytes, list[_Response.PartitionResult]]]) -> _Response:
        return _Response(
            results=[
                _Response.DeleteStateResult(topic_id=topic_id, partitions=found)
                for topic_id, found in results
            ]
        )

    return answer(ctx.pieces, request.body, "delete share group state", ask, _show, respond)


def _show(partition: int, told: Answer) -> _Response.PartitionResult:
    return _Response.PartitionResult(partition=partition, error_code=told.error, error_message=told.message)

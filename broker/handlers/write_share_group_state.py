"""WriteShareGroupState (85), versions 0-1: leaders of share partitions keep what has changed.

v1: how many records from the start on are done with (KIP-1226); -1 in version 0, that is, not known.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.request import Request
from broker.handlers.share_state_answers import answer
from coordinator.share.batches import StateBatch
from coordinator.share.manager import Done
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer, StateWrite
from protocol import messages as m

_Response = m.WriteShareGroupStateResponse
_Asked = m.WriteShareGroupStateRequest.PartitionData


def handle(ctx: BrokerContext, request: Request[m.WriteShareGroupStateRequest]) -> Any:
    """A result for each partition."""
    manager = ctx.share_state.manager()

    def ask(key: ShareKey, asked: _Asked, done: Done) -> None:
        manager.write(key, _write(asked), done)

    def respond(results: list[tuple[bytes, list[_Response.PartitionResult]]]) -> _Response:
        return _Response(
            results=[
                _Response.WriteStateResult(topic_id=topic_id, partitions=found) for topic_id, found in results
            ]
        )

    return answer(ctx.pieces, request.body, "write share group state", ask, _show, respond)


def _write(asked: _Asked) -> StateWrite:
    return StateWrite(
        asked.state_epoch,
        asked.leader_epoch,
        asked.start_offset,
        asked.delivery_complete_count,
        [
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in asked.state_batches
        ],
    )


def _show(partition: int, told: Answer) -> _Response.PartitionResult:
    return _Response.PartitionResult(partition=partition, error_code=told.error, error_message=told.message)

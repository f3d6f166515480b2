"""OffsetDelete (47), version 0: a group forgets what it committed for single partitions.

Topics that the group's members subscribe to are refused; partitions that do not exist are so one by one.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from coordinator.group.offsets import TopicPartition
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.pieces import AT_ONCE, Steps, at_once

_Topic = m.OffsetDeleteResponse.OffsetDeleteResponseTopic
_Partition = m.OffsetDeleteResponse.OffsetDeleteResponsePartition


def handle(ctx: BrokerContext, request: Request[m.OffsetDeleteRequest]) -> Any:
    """The answer, or a `Later` until the offsets are gone."""
    topics = request.body.topics
    if len(topics) + sum(len(topic.partitions) for topic in topics) > AT_ONCE:
        return _delete_in_pieces(ctx, request.body)
    return _delete(ctx, request.body, *at_once(_look_up(ctx, request.body)))


async def _delete_in_pieces(ctx: BrokerContext, body: m.OffsetDeleteRequest) -> m.OffsetDeleteResponse:
    answer = _delete(ctx, body, *await ctx.pieces.run(_look_up(ctx, body)))
    if isinstance(answer, Later):
        answer = await answer.response()
    response: m.OffsetDeleteResponse = answer
    return response


def _look_up(
    ctx: BrokerContext, body: m.OffsetDeleteRequest
) -> Steps[tuple[m.OffsetDeleteResponse, list[TopicPartition], list[_Partition]]]:
    """The response, what is to be deleted, and the answers of that."""
    response = m.OffsetDeleteResponse()
    cells: list[TopicPartition] = []
    open_answers: list[_Partition] = []
    left = AT_ONCE
    for asked in body.topics:
        answers = []
        left -= 1
        if left <= 0:
            yield
            left = AT_ONCE
        for each in asked.partitions:
            left -= 1
            if left <= 0:
                yield
                left = AT_ONCE
            answer = _Partition(partition_index=each.partition_index)
            if ctx.image.partition(asked.name, each.partition_index) is None:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                cells.append((asked.name, each.partition_index))
                open_answers.append(answer)
            answers.append(answer)
        response.topics.append(_Topic(name=asked.name, partitions=answers))
    return response, cells, open_answers


def _delete(
    ctx: BrokerContext,
    body: m.OffsetDeleteRequest,
    response: m.OffsetDeleteResponse,
    cells: list[TopicPartition],
    open_answers: list[_Partition],
) -> Any:
    later = Later()

    def done(error: ErrorCode, errors: list[ErrorCode] | None) -> None:
        if errors is None:
            later.give(m.OffsetDeleteResponse(error_code=error))
            return
        for answer, outcome in zip(open_answers, errors, strict=True):
            answer.error_code = outcome
        later.give(response)

    ctx.groups.manager().delete_offsets(body.group_id, cells, done)
    return later.now_or_later()

"""DeleteRecords (21), versions 0-2 (v2 flexible): raise the first readable offset of partitions.

Offset -1 is the high watermark. The new start is on disk before the answer, which tells the low watermark;
other live replicas have to get there before the time-out, else 7.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from protocol import messages as m
from replication.delayed_delete import await_replicas
from replication.delete_records import DeletedRecords, delete_records
from runtime.pieces import AT_ONCE, Steps, at_once

MIN_VERSION: Final = 0
MAX_VERSION: Final = 2


def handle(
    ctx: BrokerContext, request: Request[m.DeleteRecordsRequest]
) -> m.DeleteRecordsResponse | Coroutine[Any, Any, m.DeleteRecordsResponse]:
    """One answer for each partition, grouped as asked; a coroutine for many, or with other replicas."""
    body = request.body
    wanted = [
        (topic.name, each.partition_index, each.offset) for topic in body.topics for each in topic.partitions
    ]
    count = len(body.topics) + len(wanted)
    deleted = ctx.pieces.many(delete_records(wanted, ctx.replicas.find, ctx.logs.persist_log_starts), count)
    if isinstance(deleted, list) and not any(_is_replicated(each) for each in deleted):
        return at_once(_response(body, deleted))
    return _replicated(ctx, body, deleted)


def _is_replicated(result: DeletedRecords) -> bool:
    return result.partition is not None and result.partition.leadership is not None


async def _replicated(
    ctx: BrokerContext,
    body: m.DeleteRecordsRequest,
    deleted: list[DeletedRecords] | Coroutine[Any, Any, list[DeletedRecords]],
) -> m.DeleteRecordsResponse:
    results = deleted if isinstance(deleted, list) else await deleted
    settled = Later()
    await_replicas(results, body.timeout_ms, ctx.env.timer, lambda: settled.give(None))
    await settled.response()
    return await ctx.pieces.run(_response(body, results))


def _response(body: m.DeleteRecordsRequest, deleted: list[DeletedRecords]) -> Steps[m.DeleteRecordsResponse]:
    results = iter(deleted)
    response = m.DeleteRecordsResponse()
    left = AT_ONCE
    for topic in body.topics:
        answered = m.DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name)
        left -= 1
        if left <= 0:
            yield
            left = AT_ONCE
        for each in topic.partitions:
            left -= 1
            if left <= 0:
                yield
                left = AT_ONCE
            result = next(results)
            answered.partitions.append(
                m.DeleteRecordsResponse.DeleteRecordsPartitionResult(
                    partition_index=each.partition_index,
                    low_watermark=result.low_watermark,
                    error_code=result.error,
                )
            )
        response.topics.append(answered)
    return response

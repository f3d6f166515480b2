"""DeleteRecords (21), versions 0-2 (v2 flexible): raise the first readable offset of partitions.

Offset -1 is the high watermark. The new start is on disk before the answer, which tells the low watermark;
with a single replica there is nobody to wait for, so the time-out has no meaning yet.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from replication.delete_records import delete_records
from runtime.pieces import AT_ONCE, Steps

MIN_VERSION: Final = 0
MAX_VERSION: Final = 2


def handle(
    ctx: BrokerContext, request: Request[m.DeleteRecordsRequest]
) -> m.DeleteRecordsResponse | Coroutine[Any, Any, m.DeleteRecordsResponse]:
    """One answer for each partition, grouped as asked; a coroutine where there are many."""
    topics = request.body.topics
    count = len(topics) + sum(len(topic.partitions) for topic in topics)
    return ctx.pieces.many(_delete(ctx, request.body), count)


def _delete(ctx: BrokerContext, body: m.DeleteRecordsRequest) -> Steps[m.DeleteRecordsResponse]:
    topics = body.topics
    wanted = [
        (topic.name, each.partition_index, each.offset) for topic in topics for each in topic.partitions
    ]
    results = iter((yield from delete_records(wanted, ctx.replicas.find, ctx.logs.persist_log_starts)))
    response = m.DeleteRecordsResponse()
    left = AT_ONCE
    for topic in topics:
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

"""CreatePartitions (37), versions 0-3 (all of one shape; v2 flexible, v3 may answer 89 for quotas)."""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from replication.controller.outcomes import MorePartitions

MIN_VERSION: Final = 0
MAX_VERSION: Final = 3


async def handle(
    ctx: BrokerContext, request: Request[m.CreatePartitionsRequest]
) -> m.CreatePartitionsResponse:
    """Grow topics; one answer for each name."""
    body = request.body
    wanted: list[MorePartitions] = []
    async for some in ctx.pieces.of(body.topics):
        wanted += [_wanted(topic) for topic in some]
    outcomes = await ctx.controller.create_partitions(
        wanted, timeout_ms=body.timeout_ms, validate_only=body.validate_only
    )
    response = m.CreatePartitionsResponse()
    async for done in ctx.pieces.of(outcomes):
        response.results += [
            m.CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=outcome.name, error_code=outcome.error, error_message=outcome.message
            )
            for outcome in done
        ]
    return response


def _wanted(topic: m.CreatePartitionsRequest.CreatePartitionsTopic) -> MorePartitions:
    assignments = topic.assignments
    return MorePartitions(
        topic.name,
        topic.count,
        None if assignments is None else tuple(tuple(each.broker_ids) for each in assignments),
    )

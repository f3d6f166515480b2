"""DeleteTopics (20), versions 0-6.

v0-5 name topics, v6 names or ids. v5+: error messages. `delete.topic.enable=false` refuses all with 73
(below v3: 42). Unknown name 3, unknown id 100, both or neither given 42, one given twice 42.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import DeletionOutcome, TopicToDelete

MIN_VERSION: Final = 0
MAX_VERSION: Final = 6


async def handle(ctx: BrokerContext, request: Request[m.DeleteTopicsRequest]) -> m.DeleteTopicsResponse:
    """Delete what exists; one answer for each topic."""
    body, version = request.body, request.version
    topics: list[TopicToDelete] = []
    async for named in ctx.pieces.of(body.topics if version >= 6 else ()):
        topics += [TopicToDelete(topic.name, topic.topic_id) for topic in named]
    async for names in ctx.pieces.of(body.topic_names if version < 6 else ()):
        topics += [TopicToDelete(name) for name in names]
    if ctx.config.flag("delete.topic.enable"):
        outcomes = await ctx.controller.delete_topics(topics, timeout_ms=body.timeout_ms)
    else:
        error = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        outcomes = [
            DeletionOutcome(topic.name, topic.topic_id, error, error.message)
            for topic in dict.fromkeys(topics)
        ]
    response = m.DeleteTopicsResponse()
    async for done in ctx.pieces.of(outcomes):
        response.responses += [
            m.DeleteTopicsResponse.DeletableTopicResult(
                name=outcome.name if version >= 6 else outcome.name or "",
                topic_id=outcome.topic_id,
                error_code=outcome.error,
                error_message=outcome.message,
            )
            for outcome in done
        ]
    return response

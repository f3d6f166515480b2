"""AlterPartitionReassignments (45), versions 0-1: move partitions to other brokers, or leave off (KIP-455).

Null replicas cancel. v1: the client may forbid that the number of replicas changes (KIP-860).
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.cluster_state import TopicPartition

MIN_VERSION: Final = 0
MAX_VERSION: Final = 1

_Response = m.AlterPartitionReassignmentsResponse


async def handle(
    ctx: BrokerContext, request: Request[m.AlterPartitionReassignmentsRequest]
) -> m.AlterPartitionReassignmentsResponse:
    """An outcome for each partition; 41 for all where this is not the controller."""
    body = request.body
    wanted = {
        TopicPartition(topic.name, each.partition_index): (
            None if each.replicas is None else tuple(each.replicas)
        )
        for topic in body.topics
        for each in topic.partitions
    }
    outcomes = await ctx.in_cluster.admin.alter_reassignments(
        wanted, allow_factor_change=body.allow_replication_factor_change
    )
    if outcomes is None:
        error = ErrorCode.NOT_CONTROLLER
        return _Response(error_code=error, error_message=error.message)
    topics: dict[str, _Response.ReassignableTopicResponse] = {}
    for (name, index), (error, message) in outcomes.items():
        topic = topics.setdefault(name, _Response.ReassignableTopicResponse(name=name))
        topic.partitions.append(
            _Response.ReassignablePartitionResponse(
                partition_index=index, error_code=error, error_message=message
            )
        )
    return _Response(
        allow_replication_factor_change=body.allow_replication_factor_change,
        error_message=None,
        responses=list(topics.values()),
    )

"""ListPartitionReassignments (46), version 0: what is being moved (KIP-455). Null topics ask for all."""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.cluster_state import TopicPartition

MIN_VERSION: Final = 0
MAX_VERSION: Final = 0

_Response = m.ListPartitionReassignmentsResponse


async def handle(
    ctx: BrokerContext, request: Request[m.ListPartitionReassignmentsRequest]
) -> m.ListPartitionReassignmentsResponse:
    """The partitions that are being moved; 41 where this is not the controller."""
    asked = request.body.topics
    partitions = None
    if asked is not None:
        partitions = [
            TopicPartition(topic.name, index) for topic in asked for index in topic.partition_indexes
        ]
    found = await ctx.in_cluster.admin.list_reassignments(partitions)
    if found is None:
        error = ErrorCode.NOT_CONTROLLER
        return _Response(error_code=error, error_message=error.message)
    topics: dict[str, _Response.OngoingTopicReassignment] = {}
    for (name, index), assignment in found.items():
        topic = topics.setdefault(name, _Response.OngoingTopicReassignment(name=name))
        topic.partitions.append(
            _Response.OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return _Response(error_message=None, topics=list(topics.values()))

"""ElectLeaders (43), versions 0-2: have preferred leaders, or unclean ones, elected (KIP-183, KIP-460).

Null partitions ask for all of which the election is needed. v0 knows preferred ones only; v1+ has an error of
the whole request.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.cluster_state import TopicPartition
from replication.controller.leader_requests import ElectionOutcome, ElectionType

MIN_VERSION: Final = 0
MAX_VERSION: Final = 2

_Response = m.ElectLeadersResponse


async def handle(ctx: BrokerContext, request: Request[m.ElectLeadersRequest]) -> m.ElectLeadersResponse:
    """An outcome for each partition; 41 where this is not the controller, 42 for an unknown kind."""
    body = request.body
    partitions = None
    if body.topic_partitions is not None:
        partitions = [
            TopicPartition(topic.topic, index)
            for topic in body.topic_partitions
            for index in topic.partitions
        ]
    try:
        kind = ElectionType(body.election_type)
    except ValueError:
        return _refused(ErrorCode.INVALID_REQUEST, partitions)
    outcomes = await ctx.in_cluster.admin.elect_leaders(partitions, kind, timeout_ms=body.timeout_ms)
    if outcomes is None:
        return _refused(ErrorCode.NOT_CONTROLLER, partitions)
    return _Response(replica_election_results=_results(outcomes))


def _refused(error: ErrorCode, partitions: list[TopicPartition] | None) -> m.ElectLeadersResponse:
    outcomes: dict[TopicPartition, ElectionOutcome] = dict.fromkeys(partitions or (), (error, error.message))
    return _Response(error_code=error, replica_election_results=_results(outcomes))


def _results(
    outcomes: dict[TopicPartition, ElectionOutcome],
) -> list[m.ElectLeadersResponse.ReplicaElectionResult]:
    topics: dict[str, m.ElectLeadersResponse.ReplicaElectionResult] = {}
    for (name, index), (error, message) in outcomes.items():
        topic = topics.setdefault(name, _Response.ReplicaElectionResult(topic=name))
        topic.partition_result.append(
            _Response.PartitionResult(partition_id=index, error_code=error, error_message=message)
        )
    return list(topics.values())

"""DescribeProducers (61), version 0: what the leader of a partition knows of those that write to it."""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.paced import paced
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode

_Topic = m.DescribeProducersResponse.TopicResponse
_Partition = m.DescribeProducersResponse.PartitionResponse
_Producer = m.DescribeProducersResponse.ProducerState


def handle(ctx: BrokerContext, request: Request[m.DescribeProducersRequest]) -> Any:
    """The producers of each partition, by id."""
    response = m.DescribeProducersResponse()
    cells: list[tuple[str, int, _Topic]] = []
    for asked in request.body.topics:
        topic = _Topic(name=asked.name)
        response.topics.append(topic)
        cells += [(asked.name, index, topic) for index in dict.fromkeys(asked.partition_indexes)]

    def describe(cell: tuple[str, int, _Topic]) -> None:
        name, index, topic = cell
        topic.partitions.append(_describe(ctx, name, index))

    return paced(ctx.pieces, cells, describe, lambda: response)


def _describe(ctx: BrokerContext, topic: str, index: int) -> _Partition:
    replica = ctx.replicas.find(topic, index)
    if isinstance(replica, ErrorCode):
        return _Partition(partition_index=index, error_code=replica)
    if replica.offline or not replica.is_leader:
        offline = ErrorCode.KAFKA_STORAGE_ERROR if replica.offline else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _Partition(partition_index=index, error_code=offline)
    entries = replica.log.producers.entries
    return _Partition(
        partition_index=index,
        active_producers=[
            _Producer(
                producer_id=entry.producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_txn_first_offset,
            )
            for entry in sorted(entries.values(), key=lambda each: each.producer_id)
        ],
    )

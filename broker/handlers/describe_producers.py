"""DescribeProducers (61), version 0: what the leader of a partition knows of those that write to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from broker.context import BrokerContext
from broker.handlers.repeats import bounded
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.pieces import AT_ONCE, Steps
from storage.producers.entry import ProducerEntry

_Asked = m.DescribeProducersRequest.TopicRequest
_Topic = m.DescribeProducersResponse.TopicResponse
_Partition = m.DescribeProducersResponse.PartitionResponse
_Producer = m.DescribeProducersResponse.ProducerState


def handle(ctx: BrokerContext, request: Request[m.DescribeProducersRequest]) -> Any:
    """The producers of each partition, by id."""
    topics = request.body.topics
    asked = bounded(
        (topic.name, index) for topic in topics for index in dict.fromkeys(topic.partition_indexes)
    )
    count = len(topics) + sum(1 + _count(ctx, *cell) for cell in asked[:AT_ONCE])
    return ctx.pieces.many(_describe_all(ctx, topics, Counter(asked)), max(count, len(asked)))


def _describe_all(
    ctx: BrokerContext, topics: Sequence[_Asked], times: Counter[tuple[str, int]]
) -> Steps[m.DescribeProducersResponse]:
    """`times`: how often each partition is described, where it is named more often."""
    response = m.DescribeProducersResponse()
    left = AT_ONCE
    for asked in topics:
        topic = _Topic(name=asked.name)
        response.topics.append(topic)
        for index in dict.fromkeys(asked.partition_indexes):
            left -= 1
            if left <= 0:
                yield
                left = AT_ONCE
            cell = (asked.name, index)
            if times[cell]:
                times[cell] -= 1
                topic.partitions.append((yield from _describe(ctx, *cell)))
    return response


def _describe(ctx: BrokerContext, topic: str, index: int) -> Steps[_Partition]:
    replica = ctx.replicas.find(topic, index)
    if isinstance(replica, ErrorCode):
        return _Partition(partition_index=index, error_code=replica)
    if replica.offline or not replica.is_leader:
        offline = ErrorCode.KAFKA_STORAGE_ERROR if replica.offline else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _Partition(partition_index=index, error_code=offline)
    entries = replica.log.producers.entries
    answer = _Partition(partition_index=index)
    for at, producer_id in enumerate(sorted(entries)):
        if at and not at % AT_ONCE:
            yield
        entry = entries.get(producer_id)
        if entry is not None:  # not expired meanwhile
            answer.active_producers.append(_told(entry))
    return answer


def _told(entry: ProducerEntry) -> _Producer:
    return _Producer(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.current_txn_first_offset,
    )


def _count(ctx: BrokerContext, topic: str, index: int) -> int:
    replica = ctx.replicas.find(topic, index)
    return 0 if isinstance(replica, ErrorCode) else len(replica.log.producers.entries)

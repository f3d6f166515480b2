"""DescribeTopicPartitions (75), version 0: partitions in pages (KIP-966).

Topics come sorted by name, without a list all of them; at most `max.request.partition.size.limit`
partitions an answer, and a cursor where it was cut. A cursor must point into the list that is asked for
and not below partition 0: else 42 for every topic.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.endpoints import brokers_with_listener, leader_of, with_offline_replicas
from broker.handlers.request import Request
from broker.security.operations import TOPIC_OPERATIONS
from protocol import messages as m
from protocol.errors import ErrorCode
from replication import topic_names
from replication.metadata.image import NO_LEADER, PartitionImage, TopicImage
from runtime.pieces import AT_ONCE, Steps

MIN_VERSION: Final = 0
MAX_VERSION: Final = 0

_Response = m.DescribeTopicPartitionsResponse


def handle(
    ctx: BrokerContext, request: Request[m.DescribeTopicPartitionsRequest]
) -> m.DescribeTopicPartitionsResponse | Coroutine[Any, Any, m.DescribeTopicPartitionsResponse]:
    """One page; a coroutine where many topics are asked for."""
    return ctx.pieces.many(_page(ctx, request), len(request.body.topics or ctx.image.topics))


def _page(
    ctx: BrokerContext, request: Request[m.DescribeTopicPartitionsRequest]
) -> Steps[m.DescribeTopicPartitionsResponse]:
    body, image = request.body, ctx.image
    wants_all = not body.topics
    names = sorted(dict.fromkeys(t.name for t in body.topics) if body.topics else image.topics)
    first, start = "", 0
    if body.cursor is not None:
        first, start = body.cursor.topic_name, body.cursor.partition_index
        names = [name for name in names if name >= first]
        if start < 0 or (not wants_all and (not names or names[0] != first)):
            return _refused(body)
    left = max(1, min(body.response_partition_limit, ctx.config.integer("max.request.partition.size.limit")))
    reachable = brokers_with_listener(image, request.listener_name)
    live = image.brokers
    answer = _Response()
    for number, name in enumerate(names, 1):
        if not number % AT_ONCE:
            yield
        if left == 0:
            answer.next_cursor = _Response.Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        if topic is None:
            answer.topics.append(_missing(name))
            continue
        begin = start if name == first else 0
        page = topic.partitions[begin : begin + left]
        left -= len(page)
        seen = with_offline_replicas(ctx, topic, begin, begin + len(page))
        answer.topics.append(
            _described(topic, [_partition(each, offline, live, reachable) for each, offline in seen])
        )
        if begin + len(page) < len(topic.partitions):
            answer.next_cursor = _Response.Cursor(topic_name=name, partition_index=begin + len(page))
            break
    return answer


def _refused(body: m.DescribeTopicPartitionsRequest) -> m.DescribeTopicPartitionsResponse:
    return _Response(
        topics=[
            _Response.DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=topic.name
            )
            for topic in body.topics
        ]
    )


def _missing(name: str) -> m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    known = topic_names.refusal_of(name) is None
    return _Response.DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=topic_names.is_internal(name),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _described(
    topic: TopicImage,
    partitions: list[m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition],
) -> m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    return _Response.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic_names.is_internal(topic.name),
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    partition: PartitionImage,
    offline: list[int],
    live: Mapping[int, object],
    reachable: Mapping[int, object],
) -> m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition:
    error, leader = leader_of(partition, live, reachable)
    # Who was in sync last may lead again without loss once its disk is back (KIP-966).
    eligible = [] if partition.isr or partition.leader != NO_LEADER else list(partition.replicas)
    if partition.leader == NO_LEADER:
        error = ErrorCode.NONE
    return _Response.DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=eligible,
        last_known_elr=eligible,
        offline_replicas=offline,
    )

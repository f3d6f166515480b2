"""OffsetForLeaderEpoch (23), versions 0-4: where an epoch ended (KIP-101, KIP-320).

The largest epoch at or below the asked one and its exclusive end offset, -1/-1 when it is not known.
v1+: the epoch itself is told. v2+: the client's own epoch is checked (74, 75). v3+: a replica id, which
changes nothing: only the leader answers.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.partition import Partition
from runtime.pieces import AT_ONCE, Steps, split

MIN_VERSION: Final = 0
MAX_VERSION: Final = 4

_End = m.OffsetForLeaderEpochResponse.EpochEndOffset


def handle(
    ctx: BrokerContext, request: Request[m.OffsetForLeaderEpochRequest]
) -> m.OffsetForLeaderEpochResponse | Coroutine[Any, Any, m.OffsetForLeaderEpochResponse]:
    """One answer for each partition; a coroutine where much is asked."""
    topics = request.body.topics
    count = len(topics) + sum(len(topic.partitions) for topic in topics)
    return ctx.pieces.many(_answers(ctx, request.body), count)


def _answers(
    ctx: BrokerContext, body: m.OffsetForLeaderEpochRequest
) -> Steps[m.OffsetForLeaderEpochResponse]:
    response = m.OffsetForLeaderEpochResponse()
    left = AT_ONCE
    for topic in body.topics:
        result = m.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(result)
        left -= 1
        for some in split(topic.partitions):
            result.partitions += [_answer(ctx, topic.topic, each) for each in some]
            left -= len(some)
            if left <= 0:
                yield
                left = AT_ONCE
        if left <= 0:
            yield
            left = AT_ONCE
    return response


def _answer(
    ctx: BrokerContext,
    topic: str,
    asked: m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition,
) -> m.OffsetForLeaderEpochResponse.EpochEndOffset:
    partition = ctx.replicas.find(topic, asked.partition)
    if not isinstance(partition, Partition):
        return _End(error_code=partition, partition=asked.partition)
    error = partition.check(asked.current_leader_epoch)
    if error != ErrorCode.NONE:
        return _End(error_code=error, partition=asked.partition)
    epoch, end_offset = partition.epoch_end(asked.leader_epoch)
    return _End(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)

"""OffsetForLeaderEpoch (23), versions 0-4: where an epoch ended (KIP-101, KIP-320).

The largest epoch at or below the asked one and its exclusive end offset, -1/-1 when it is not known.
v1+: the epoch itself is told. v2+: the client's own epoch is checked (74, 75). v3+: a replica id, which
changes nothing: only the leader answers.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.partition import Partition

MIN_VERSION: Final = 0
MAX_VERSION: Final = 4

_End = m.OffsetForLeaderEpochResponse.EpochEndOffset


def handle(
    ctx: BrokerContext, request: Request[m.OffsetForLeaderEpochRequest]
) -> m.OffsetForLeaderEpochResponse:
    """One answer for each partition."""
    body = request.body
    return m.OffsetForLeaderEpochResponse(
        topics=[
            m.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(ctx, topic.topic, each) for each in topic.partitions],
            )
            for topic in body.topics
        ]
    )


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

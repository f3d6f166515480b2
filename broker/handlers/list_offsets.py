"""ListOffsets (2), versions 0-11: the offset at an end of a log, or of the first record at a time.

v0: up to max_num_offsets segment starts, newest first. v1+: one (timestamp, offset). v2+: isolation level.
v4+: leader epochs, checked and told. Special timestamps: -1 latest and -2 earliest (told with timestamp -1),
v7+ -3 the record with the greatest timestamp, v8+ -4 earliest on local disk, v9+ -5 latest in tiered storage,
v11+ -6 earliest not yet there (there is none: offset -1). A negative one the version does not know is 35.
v10+: a time-out, of no meaning without tiered storage.
A partition that is named twice is answered once, with 42. No record at or after the time: offset and
timestamp -1, no error.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.partition import Partition
from storage.errors import StorageError

MIN_VERSION: Final = 0
MAX_VERSION: Final = 11

_LATEST, _EARLIEST, _MAX_TIMESTAMP = -1, -2, -3
_EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = -4, -5, -6
_KNOWN_FROM: Final = {
    _LATEST: 0,
    _EARLIEST: 0,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_CONSUMER, _DEBUGGING = -1, -2

_Asked = m.ListOffsetsRequest.ListOffsetsPartition
_Found = m.ListOffsetsResponse.ListOffsetsPartitionResponse


def handle(ctx: BrokerContext, request: Request[m.ListOffsetsRequest]) -> m.ListOffsetsResponse:
    """One answer for each partition."""
    body = request.body
    times = Counter((topic.name, each.partition_index) for topic in body.topics for each in topic.partitions)
    response = m.ListOffsetsResponse()
    answered: dict[tuple[str, int], None] = {}
    for topic in body.topics:
        found = m.ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name)
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            if key in answered:
                continue
            answered[key] = None
            if times[key] > 1:
                found.partitions.append(_failed(asked, ErrorCode.INVALID_REQUEST))
            else:
                found.partitions.append(_answer(ctx, request, topic.name, asked))
        if found.partitions or not topic.partitions:
            response.topics.append(found)
    return response


def _failed(
    asked: m.ListOffsetsRequest.ListOffsetsPartition, error: ErrorCode
) -> m.ListOffsetsResponse.ListOffsetsPartitionResponse:
    return _Found(partition_index=asked.partition_index, error_code=error)


def _answer(
    ctx: BrokerContext,
    request: Request[m.ListOffsetsRequest],
    topic: str,
    asked: m.ListOffsetsRequest.ListOffsetsPartition,
) -> m.ListOffsetsResponse.ListOffsetsPartitionResponse:
    body, version = request.body, request.version
    if asked.timestamp < 0 and version < _KNOWN_FROM.get(asked.timestamp, MAX_VERSION + 1):
        return _failed(asked, ErrorCode.UNSUPPORTED_VERSION)
    partition = ctx.replicas.find(topic, asked.partition_index)
    if not isinstance(partition, Partition):
        return _failed(asked, partition)
    error = partition.check(asked.current_leader_epoch, leader_required=body.replica_id != _DEBUGGING)
    if error != ErrorCode.NONE:
        return _failed(asked, error)
    if body.isolation_level not in (0, 1):
        return _failed(asked, ErrorCode.UNKNOWN_SERVER_ERROR)
    limit = partition.log.end_offset
    if body.replica_id == _CONSUMER:
        limit = partition.read_limit(body.isolation_level)
    try:
        if version == 0:
            return _old_style(partition, asked, limit)
        offset, timestamp, epoch = _lookup(partition, asked.timestamp, limit)
    except StorageError as failure:
        return _failed(asked, failure.error)
    return _Found(
        partition_index=asked.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if version >= 4 else -1,
    )


def _old_style(
    partition: Partition, asked: m.ListOffsetsRequest.ListOffsetsPartition, limit: int
) -> m.ListOffsetsResponse.ListOffsetsPartitionResponse:
    offsets = partition.log.segment_start_offsets_before(asked.timestamp, max(asked.max_num_offsets, 0))
    return _Found(
        partition_index=asked.partition_index,
        old_style_offsets=[min(offset, limit) for offset in offsets],
    )


def _lookup(partition: Partition, timestamp: int, limit: int) -> tuple[int, int, int]:
    """(offset, timestamp, leader epoch), each -1 where there is none."""
    log = partition.log
    if timestamp == _LATEST:
        return limit, -1, partition.leader_epoch
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        epoch = log.leader_epochs.epoch_at(log.start_offset)
        return log.start_offset, -1, epoch if epoch >= 0 else partition.leader_epoch
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD):
        return -1, -1, -1
    if timestamp == _MAX_TIMESTAMP:
        found = log.max_timestamp_offset(limit)
    else:
        found = log.offset_for_timestamp(timestamp, limit)
    return (-1, -1, -1) if found is None else (found.offset, found.timestamp, found.leader_epoch)

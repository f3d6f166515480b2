"""What a Fetch request says, at whatever version: limits, partitions, and what its session may forget."""

from __future__ import annotations

from typing import Final

from protocol import messages as m
from replication.fetch import FetchParams, PartitionKey, Wanted

IDS_FROM: Final = 13
CONVERTED_UPTO: Final = 3
CONVERTED_BYTES: Final = 4 << 20  # of an answer, before its conversion; it and the result lie in memory
SESSIONS_FROM: Final = 7
NO_SESSION_EPOCH: Final = -1
INT32_MAX: Final = 2**31 - 1


def params_of(version: int, request: m.FetchRequest, max_bytes: int) -> FetchParams:
    """What holds for all its partitions; a consumer's answer has at most `max_bytes`."""
    replica_id = request.replica_id if version < 15 else request.replica_state.replica_id
    limit = request.max_bytes if version > 2 else INT32_MAX
    if version <= CONVERTED_UPTO:
        limit = min(limit, CONVERTED_BYTES)
    return FetchParams(
        version=version,
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=limit if replica_id >= 0 else min(limit, max_bytes),
        isolation=request.isolation_level,
        replica_id=replica_id,
    )


def session_of(version: int, request: m.FetchRequest) -> tuple[int, int]:
    """Id and epoch of its session; 0 and -1 where there is none."""
    if version >= SESSIONS_FROM:
        return request.session_id, request.session_epoch
    return 0, NO_SESSION_EPOCH


def wanted_of(request: m.FetchRequest) -> list[Wanted]:
    """Its partitions, in order."""
    return [
        Wanted(
            topic.topic,
            topic.topic_id,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            partition.log_start_offset,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]


def forgotten_of(version: int, request: m.FetchRequest) -> list[PartitionKey]:
    """The partitions that its session shall watch no longer."""
    return [
        (topic.topic_id if version >= IDS_FROM else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]

"""ListOffsets (2), versions 0-11: the offset at an end of a log, or of the first record at a time.

v0: up to max_num_offsets segment starts, newest first. v1+: one (timestamp, offset). v2+: isolation level.
v4+: leader epochs, checked and told. Which special timestamps a version knows: replication.list_offsets.
v10+: a time-out, of no meaning without tiered storage.
A partition that is named twice is answered once, with 42. No record at or after the time: offset and
timestamp -1, no error. Searches by time read files and unpack batches, so they run in a thread, those of one
request one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.list_offsets import FoundOffset, OffsetQuery, Search, find_offset
from replication.partition import Partition

MIN_VERSION: Final = 0
MAX_VERSION: Final = 11
_EPOCHS_FROM: Final = 4

_Found = m.ListOffsetsResponse.ListOffsetsPartitionResponse
_Places = list[tuple[Search, m.ListOffsetsResponse.ListOffsetsPartitionResponse]]


def handle(
    ctx: BrokerContext, request: Request[m.ListOffsetsRequest]
) -> m.ListOffsetsResponse | Coroutine[Any, Any, m.ListOffsetsResponse]:
    """One answer for each partition; a coroutine where something has to be searched for."""
    topics = request.body.topics
    times = Counter((topic.name, each.partition_index) for topic in topics for each in topic.partitions)
    response = m.ListOffsetsResponse()
    searches: _Places = []
    answered: set[tuple[str, int]] = set()
    for topic in topics:
        found = m.ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name)
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            if key in answered:
                continue
            answered.add(key)
            answer = _Found(partition_index=asked.partition_index)
            found.partitions.append(answer)
            result = (
                FoundOffset(ErrorCode.INVALID_REQUEST)
                if times[key] > 1
                else _find(ctx, request, topic.name, asked)
            )
            if isinstance(result, Search):
                searches.append((result, answer))
            else:
                _fill(answer, result, request.version)
        if found.partitions or not topic.partitions:
            response.topics.append(found)
    return _search(ctx, request.version, response, searches) if searches else response


def _find(
    ctx: BrokerContext,
    request: Request[m.ListOffsetsRequest],
    topic: str,
    asked: m.ListOffsetsRequest.ListOffsetsPartition,
) -> FoundOffset | Search:
    partition = ctx.replicas.find(topic, asked.partition_index)
    if not isinstance(partition, Partition):
        return FoundOffset(partition)
    return find_offset(
        partition,
        OffsetQuery(asked.timestamp, asked.current_leader_epoch, asked.max_num_offsets),
        version=request.version,
        now_ms=ctx.env.clock.now_ms(),
        isolation=request.body.isolation_level,
        replica_id=request.body.replica_id,
    )


def _fill(
    answer: m.ListOffsetsResponse.ListOffsetsPartitionResponse, result: FoundOffset, version: int
) -> None:
    answer.error_code = result.error
    answer.offset, answer.timestamp = result.offset, result.timestamp
    answer.leader_epoch = result.leader_epoch if version >= _EPOCHS_FROM else -1
    answer.old_style_offsets = result.old_style


async def _search(
    ctx: BrokerContext, version: int, response: m.ListOffsetsResponse, searches: _Places
) -> m.ListOffsetsResponse:
    results = await ctx.env.run_blocking(lambda: [search.run() for search, _ in searches])
    for (_, answer), result in zip(searches, results, strict=True):
        _fill(answer, result, version)
    return response

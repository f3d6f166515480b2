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
from runtime.pieces import AT_ONCE, Steps, at_once, split

MIN_VERSION: Final = 0
MAX_VERSION: Final = 11
_EPOCHS_FROM: Final = 4

_Found = m.ListOffsetsResponse.ListOffsetsPartitionResponse
_Places = list[tuple[Search, m.ListOffsetsResponse.ListOffsetsPartitionResponse]]


def handle(
    ctx: BrokerContext, request: Request[m.ListOffsetsRequest]
) -> m.ListOffsetsResponse | Coroutine[Any, Any, m.ListOffsetsResponse]:
    """One answer for each partition; a coroutine where something has to be searched for, or much is asked."""
    topics = request.body.topics
    if len(topics) + sum(len(topic.partitions) for topic in topics) > AT_ONCE:
        return _answer_many(ctx, request)
    response, searches = at_once(_look_up(ctx, request))
    return _search(ctx, request.version, response, searches) if searches else response


async def _answer_many(ctx: BrokerContext, request: Request[m.ListOffsetsRequest]) -> m.ListOffsetsResponse:
    response, searches = await ctx.pieces.run(_look_up(ctx, request))
    return await _search(ctx, request.version, response, searches) if searches else response


def _look_up(
    ctx: BrokerContext, request: Request[m.ListOffsetsRequest]
) -> Steps[tuple[m.ListOffsetsResponse, _Places]]:
    """What memory knows, and what has to be searched for."""
    topics = request.body.topics
    times: Counter[tuple[str, int]] = Counter()
    left = AT_ONCE
    for topic in topics:
        for indexes in split(topic.partitions):
            times.update((topic.name, each.partition_index) for each in indexes)
            left -= len(indexes)
            if left <= 0:
                yield
                left = AT_ONCE
    response = m.ListOffsetsResponse()
    searches: _Places = []
    answered: set[tuple[str, int]] = set()
    for topic in topics:
        found = m.ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name)
        left -= 1
        for asked in topic.partitions:
            left -= 1
            if left <= 0:
                yield
                left = AT_ONCE
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
        if left <= 0:
            yield
            left = AT_ONCE
    return response, searches


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
    async for some in ctx.pieces.of(list(zip(searches, results, strict=True))):
        for (_, answer), result in some:
            _fill(answer, result, version)
    return response

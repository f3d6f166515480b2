"""DescribeShareGroupOffsets (90), versions 0-1: where share groups stand in their partitions.

v1: the lag, which is what is behind the start offset without the records that are done with already; -1 where
it is not known. Without topics all partitions are told that have share state; a group that does not exist
has none. Topics that are asked for by name are told whether or not the group reads them. Of a group
that is named twice the last is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.paced import paced
from broker.handlers.request import Request
from broker.handlers.share_groups import share_requests
from coordinator.result import CoordinatorError
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from runtime.pieces import AT_ONCE

if TYPE_CHECKING:
    from coordinator.group.share.ports import Cell, Summary
    from coordinator.group.share.requests import ShareRequests

NOT_KNOWN: Final = -1
GROUPS_AT_ONCE: Final = 100
PARTITIONS_AT_ONCE: Final = 200  # of 25 us, for the share coordinator is asked about each
LAG_MAX: Final = (1 << 63) - 1  # any number may have been altered to be the start

_Asked = m.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
_Group = m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_Topic = m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
_Partition = m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition


def handle(ctx: BrokerContext, request: Request[m.DescribeShareGroupOffsetsRequest]) -> Any:
    """The answer, or a `Later` until the share coordinator has told about all groups."""
    asked = list({each.group_id: each for each in request.body.groups}.values())
    requests = share_requests(ctx)
    response = m.DescribeShareGroupOffsetsResponse(groups=[_Group(group_id=each.group_id) for each in asked])
    if requests is None:
        for group in response.groups:
            group.error_code = ErrorCode.UNSUPPORTED_VERSION
        return response
    left = len(asked)
    if not left:
        return response
    if sum(len(topic.partitions) for each in asked for topic in each.topics or ()) > AT_ONCE:
        return _describe_in_pieces(ctx, requests, asked, response)
    later = Later()

    def done() -> None:
        nonlocal left
        left -= 1
        if not left:
            later.give(response)

    def describe(at: int) -> None:
        _describe(ctx, requests, asked[at], response.groups[at], done)

    return paced(ctx.pieces, range(left), describe, later.now_or_later)


async def _describe_in_pieces(
    ctx: BrokerContext,
    requests: ShareRequests,
    asked: list[_Asked],
    response: m.DescribeShareGroupOffsetsResponse,
) -> m.DescribeShareGroupOffsetsResponse:
    """One group behind the other, and of one so many partitions at once."""
    async for pairs in ctx.pieces.of(list(zip(asked, response.groups, strict=True)), GROUPS_AT_ONCE):
        for each, group in pairs:
            try:
                partitions, unknown = _wanted(ctx, requests, each)
            except CoordinatorError as error:
                group.error_code, group.error_message = error.error, error.error.message
                continue
            for topic_id, indexes in partitions.items():
                topic = _Topic(topic_id=topic_id)
                async for some in ctx.pieces.of(indexes, PARTITIONS_AT_ONCE):
                    told = Later()
                    requests.summaries(each.group_id, {topic_id: list(some)}, told.give)
                    found = await told.response()
                    known = ctx.image.topics_by_id.get(topic_id)
                    if known is None:
                        break  # deleted meanwhile
                    topic.topic_name = known.name
                    topic.partitions += [
                        _row(requests, known.name, index, found[topic_id, index]) for index in some
                    ]
                else:
                    group.topics.append(topic)
            group.topics += unknown
    return response


def _describe(
    ctx: BrokerContext, requests: ShareRequests, asked: _Asked, group: _Group, done: Callable[[], None]
) -> None:
    """Fill in one group."""
    try:
        partitions, unknown = _wanted(ctx, requests, asked)
    except CoordinatorError as error:
        group.error_code, group.error_message = error.error, error.error.message
        done()
        return

    def told(found: dict[Cell, Summary]) -> None:
        for topic_id, indexes in partitions.items():
            topic = ctx.image.topics_by_id.get(topic_id)
            if topic is None:
                continue  # deleted meanwhile
            rows = [_row(requests, topic.name, index, found[topic_id, index]) for index in indexes]
            group.topics.append(_Topic(topic_name=topic.name, topic_id=topic_id, partitions=rows))
        group.topics += unknown
        done()

    requests.summaries(asked.group_id, partitions, told)


def _wanted(
    ctx: BrokerContext, requests: ShareRequests, asked: _Asked
) -> tuple[dict[bytes, list[int]], list[_Topic]]:
    """Partitions by topic id, and what is said of topics that do not exist. Raises CoordinatorError."""
    if asked.topics is None:
        known = requests.initialized(asked.group_id)
        return {topic_id: known[topic_id] for topic_id in known if topic_id in ctx.image.topics_by_id}, []
    wanted: dict[bytes, dict[int, None]] = {}
    unknown = []
    for each in asked.topics:
        topic = ctx.image.topics.get(each.topic_name)
        if topic is not None:
            wanted.setdefault(topic.topic_id, {}).update(dict.fromkeys(each.partitions))
        else:
            rows = [_Partition(partition_index=index, start_offset=NOT_KNOWN) for index in each.partitions]
            unknown.append(_Topic(topic_name=each.topic_name, topic_id=ZERO_UUID, partitions=rows))
    return {topic_id: list(indexes) for topic_id, indexes in wanted.items()}, unknown


def _row(requests: ShareRequests, topic: str, index: int, summary: Summary) -> _Partition:
    row = _Partition(
        partition_index=index, start_offset=summary.start_offset, leader_epoch=summary.leader_epoch, lag=-1
    )
    if summary.error is not ErrorCode.NONE:
        return _Partition(partition_index=index, start_offset=NOT_KNOWN, leader_epoch=0, lag=NOT_KNOWN)
    if summary.start_offset == NOT_KNOWN or summary.complete_count == NOT_KNOWN:
        return row
    latest = requests.latest_offset(topic, index)
    if isinstance(latest, ErrorCode):
        return _Partition(partition_index=index, error_code=latest, error_message=latest.message)
    lag = latest - summary.start_offset - summary.complete_count
    row.lag = max(min(lag, LAG_MAX), -LAG_MAX)
    return row

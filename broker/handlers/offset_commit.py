"""OffsetCommit (8), versions 0-10: how far a group has come.

Partitions that do not exist are refused one by one and the others are committed all the same; where none is
left the coordinator is not asked. v1 may say when the offset was committed, v2-4 how long it is kept. v10
names topics by id. v0 is stored as v1: ZooKeeper holds no offsets here.

The connection remembers a good one, as the next will be its like (offset_commit_shape).
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.offset_commit_shape import OffsetCommitShape, pieces_of
from broker.handlers.request import Request
from broker.net.connection import Connection
from coordinator.group.manager import Committer
from coordinator.group.offsets import NO_RETENTION, Commit
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from runtime.pieces import AT_ONCE, Steps, at_once

IDS_FROM = 10
RETENTION_VERSIONS = range(2, 5)

_Topic = m.OffsetCommitResponse.OffsetCommitResponseTopic
_Partition = m.OffsetCommitResponse.OffsetCommitResponsePartition


def handle(ctx: BrokerContext, request: Request[m.OffsetCommitRequest]) -> Any:
    """The answer, or a `Later` until the offsets are committed."""
    topics = request.body.topics
    if len(topics) + sum(len(topic.partitions) for topic in topics) > AT_ONCE:
        return _commit_in_pieces(ctx, request)
    return _commit(ctx, request, *at_once(_look_up(ctx, request)))


async def _commit_in_pieces(
    ctx: BrokerContext, request: Request[m.OffsetCommitRequest]
) -> m.OffsetCommitResponse:
    answer = _commit(ctx, request, *await ctx.pieces.run(_look_up(ctx, request)))
    if isinstance(answer, Later):
        answer = await answer.response()
    response: m.OffsetCommitResponse = answer
    return response


def _look_up(
    ctx: BrokerContext, request: Request[m.OffsetCommitRequest]
) -> Steps[tuple[m.OffsetCommitResponse, list[Commit], list[_Partition]]]:
    """The response, what is to be committed, and the answers of that."""
    body, version = request.body, request.version
    response = m.OffsetCommitResponse()
    commits: list[Commit] = []
    open_answers: list[_Partition] = []
    left = AT_ONCE
    for asked in body.topics:
        left -= 1
        if left <= 0:
            yield
            left = AT_ONCE
        name, partition_count, missing = topic_of(ctx, asked, by_id=version >= IDS_FROM)
        answers: list[_Partition] = []
        for each in asked.partitions:
            left -= 1
            if left <= 0:
                yield
                left = AT_ONCE
            answer = _Partition(partition_index=each.partition_index)
            if 0 <= each.partition_index < partition_count:
                open_answers.append(answer)
                commits.append(
                    Commit(
                        name,
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.committed_metadata,
                        each.commit_timestamp,
                    )
                )
            else:
                answer.error_code = missing
            answers.append(answer)
        response.topics.append(_Topic(name=asked.name, topic_id=asked.topic_id, partitions=answers))
    return response, commits, open_answers


def _commit(
    ctx: BrokerContext,
    request: Request[m.OffsetCommitRequest],
    response: m.OffsetCommitResponse,
    commits: list[Commit],
    open_answers: list[_Partition],
) -> Any:
    body, version = request.body, request.version
    if not commits:
        return response
    later = Later()
    committer = Committer(body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)
    retention_ms = body.retention_time_ms if version in RETENTION_VERSIONS else NO_RETENTION

    def done(error: ErrorCode, errors: list[ErrorCode] | None) -> None:
        for at, answer in enumerate(open_answers):
            answer.error_code = error if errors is None else errors[at]
        later.give(response)
        if not any(answer.error_code for topic in response.topics for answer in topic.partitions):
            _remember(ctx, request, committer, commits, retention_ms, response)

    ctx.groups.manager().commit_offsets(
        body.group_id, committer, version, commits, done, retention_ms=retention_ms
    )
    return later.now_or_later()


def _remember(
    ctx: BrokerContext,
    request: Request[m.OffsetCommitRequest],
    committer: Committer,
    commits: list[Commit],
    retention_ms: int,
    response: m.OffsetCommitResponse,
) -> None:
    connection = request.connection
    if isinstance(connection, Connection) and not connection.closed:
        pieces = pieces_of(request.version, request.body)
        if pieces is not None:
            shape = OffsetCommitShape(ctx, request, pieces, committer, commits, retention_ms, response)
            connection.remember(shape)


def topic_of(
    ctx: BrokerContext,
    asked: m.OffsetCommitRequest.OffsetCommitRequestTopic
    | m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic,
    *,
    by_id: bool,
) -> tuple[str, int, ErrorCode]:
    """Name, number of partitions, and what one that is not there is answered."""
    if not by_id:
        topic = ctx.image.topics.get(asked.name)
        return asked.name, len(topic.partitions) if topic else 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = ctx.image.topics_by_id.get(asked.topic_id) if asked.topic_id != ZERO_UUID else None
    if topic is None:
        return "", 0, ErrorCode.UNKNOWN_TOPIC_ID
    return topic.name, len(topic.partitions), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

"""OffsetCommit (8), versions 0-10: how far a group has come.

Where none of the partitions exists the coordinator is not asked. v1 may say when the offset was committed,
v2-4 how long it is kept. v10 names topics by id. v0 is stored as v1: ZooKeeper holds no offsets here.

The connection remembers a good one, as the next will be its like (offset_commit_shape).
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.commit_lookup import Found, look_up_then
from broker.handlers.later import Later
from broker.handlers.offset_commit_shape import OffsetCommitShape, pieces_of
from broker.handlers.request import Request
from broker.net.connection import Connection
from coordinator.group.manager import Committer
from coordinator.group.offsets import NO_RETENTION, Commit
from protocol import messages as m
from protocol.errors import ErrorCode

IDS_FROM = 10
RETENTION_VERSIONS = range(2, 5)

_Request = m.OffsetCommitRequest
_Topic = m.OffsetCommitResponse.OffsetCommitResponseTopic
_Partition = m.OffsetCommitResponse.OffsetCommitResponsePartition


def handle(ctx: BrokerContext, request: Request[_Request]) -> Any:
    """The answer, or a `Later` until the offsets are committed."""
    return look_up_then(
        ctx,
        request.body.topics,
        lambda index: _Partition(partition_index=index),
        _commit_of,
        lambda found: _commit(ctx, request, found),
        by_id=request.version >= IDS_FROM,
    )


def _commit_of(topic: str, asked: _Request.OffsetCommitRequestPartition) -> Commit:
    return Commit(
        topic,
        asked.partition_index,
        asked.committed_offset,
        asked.committed_leader_epoch,
        asked.committed_metadata,
        asked.commit_timestamp,
    )


def _commit(ctx: BrokerContext, request: Request[_Request], found: Found[_Partition]) -> Any:
    body, version = request.body, request.version
    response = m.OffsetCommitResponse(
        topics=[
            _Topic(name=asked.name, topic_id=asked.topic_id, partitions=answers)
            for asked, answers in zip(body.topics, found.answers, strict=True)
        ]
    )
    if not found.commits:
        return response
    later = Later()
    committer = Committer(body.member_id, body.group_instance_id, body.generation_id_or_member_epoch)
    retention_ms = body.retention_time_ms if version in RETENTION_VERSIONS else NO_RETENTION

    def done(error: ErrorCode, errors: list[ErrorCode] | None) -> None:
        found.settle(error, errors)
        later.give(response)
        if not any(answer.error_code for answers in found.answers for answer in answers):
            _remember(ctx, request, committer, found.commits, retention_ms, response)

    ctx.groups.manager().commit_offsets(
        body.group_id, committer, version, found.commits, done, retention_ms=retention_ms
    )
    return later.now_or_later()


def _remember(
    ctx: BrokerContext,
    request: Request[_Request],
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

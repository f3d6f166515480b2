"""TxnOffsetCommit (28), versions 0-6: how far a group has come, if the transaction commits.

The offsets are pending until the transaction's marker. v3+: the member and generation that a consumer read
with (KIP-447). The transaction is verified first as that of any partition is (produce_transactions); from v5
on that adds the group's partition to it. v6 names topics by id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from broker.context import BrokerContext
from broker.groups import TOPIC as OFFSETS
from broker.handlers.commit_lookup import Found, look_up_then
from broker.handlers.later import Later
from broker.handlers.produce_transactions import told
from broker.handlers.request import Request
from broker.transaction.verifier import Question
from coordinator.group.manager import Committer
from coordinator.group.offsets import Commit
from coordinator.result import CoordinatorError, Producer, append_error
from coordinator.transaction.transitions import Known
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import NO_SEQUENCE
from storage.transactions import start_verification

ABORTABLE_FROM: Final = 4
ADDS_FROM: Final = 5
IDS_FROM: Final = 6

_Request = m.TxnOffsetCommitRequest
_Topic = m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Partition = m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


def handle(ctx: BrokerContext, request: Request[_Request]) -> Any:
    """The answer, or a `Later` until the offsets are in the log."""
    return look_up_then(
        ctx,
        request.body.topics,
        lambda index: _Partition(partition_index=index),
        _commit_of,
        lambda found: _commit(ctx, request, found),
        by_id=request.version >= IDS_FROM,
    )


def _commit_of(topic: str, asked: _Request.TxnOffsetCommitRequestPartition) -> Commit:
    return Commit(
        topic,
        asked.partition_index,
        asked.committed_offset,
        asked.committed_leader_epoch,
        asked.committed_metadata,
    )


def _commit(ctx: BrokerContext, request: Request[_Request], found: Found[_Partition]) -> Any:
    body = request.body
    response = m.TxnOffsetCommitResponse(
        topics=[
            _Topic(name=asked.name, topic_id=asked.topic_id, partitions=answers)
            for asked, answers in zip(body.topics, found.answers, strict=True)
        ]
    )
    if not found.commits:
        return response
    later = Later()

    def done(error: ErrorCode, errors: list[ErrorCode] | None) -> None:
        found.settle(error, errors)
        later.give(response)

    def verified(error: ErrorCode, guard: object | None) -> None:
        if error is not ErrorCode.NONE:
            done(error, None)
            return
        ctx.groups.manager().commit_offsets(
            body.group_id,
            Committer(body.member_id, body.group_instance_id, body.generation_id_or_member_epoch),
            request.version,
            found.commits,
            done,
            producer=Producer(body.producer_id, body.producer_epoch),
            guard=guard,
        )

    _verify(ctx, request, verified)
    return later.now_or_later()


def _verify(
    ctx: BrokerContext, request: Request[_Request], done: Callable[[ErrorCode, object | None], None]
) -> None:
    """Have the transaction's coordinator say that the group's partition is in the transaction."""
    body, version = request.body, request.version
    try:
        partition = ctx.groups.manager().partition_of(body.group_id)
        ctx.groups.manager().runtime.shard(partition)
    except CoordinatorError as refused:
        done(refused.error, None)
        return
    replica = ctx.replicas.get(OFFSETS, partition)
    add = version >= ADDS_FROM
    guard = None
    if replica is not None and (add or ctx.logs.producer_settings.verify):
        guard = start_verification(
            replica.log, body.producer_id, NO_SEQUENCE, body.producer_epoch, add, ctx.env.clock.now_ms()
        )
    if guard is None:
        done(ErrorCode.NONE, None)
        return
    cell = (OFFSETS, partition)

    def answered(errors: dict[tuple[str, int], ErrorCode]) -> None:
        error = errors[cell]
        if error is ErrorCode.NETWORK_EXCEPTION:
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # older clients know what to do then
        elif error is not ErrorCode.NONE:
            error = append_error(told(error, add=add, abortable=version >= ABORTABLE_FROM)[0])
        done(error, guard)

    known = Known(body.producer_id, body.producer_epoch)
    ctx.transactions.verifier.ask(Question(body.transactional_id, known, [cell], add), answered)

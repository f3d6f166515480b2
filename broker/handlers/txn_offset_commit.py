"""TxnOffsetCommit (28), versions 0-6: how far a group has come, if the transaction commits.

The offsets are pending until the transaction's marker. v3+: the member and generation that a consumer read
with (KIP-447). The transaction is verified first as that of any partition is (produce_transactions); from v5
on that adds the group's partition to it. v6 names topics by id. Partitions that do not exist are refused one
by one and the others are committed all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from broker.context import BrokerContext
from broker.groups import TOPIC as OFFSETS
from broker.handlers.later import Later
from broker.handlers.offset_commit import topic_of
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
from runtime.pieces import AT_ONCE, Steps, at_once
from storage.transactions import start_verification

ABORTABLE_FROM: Final = 4
ADDS_FROM: Final = 5
IDS_FROM: Final = 6

_Request = m.TxnOffsetCommitRequest
_Topic = m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
_Partition = m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
_Found = tuple[m.TxnOffsetCommitResponse, list[Commit], list[_Partition]]


def handle(ctx: BrokerContext, request: Request[_Request]) -> Any:
    """The answer, or a `Later` until the offsets are in the log."""
    topics = request.body.topics
    if len(topics) + sum(len(topic.partitions) for topic in topics) > AT_ONCE:
        return _in_pieces(ctx, request)
    return _commit(ctx, request, *at_once(_look_up(ctx, request)))


async def _in_pieces(ctx: BrokerContext, request: Request[_Request]) -> m.TxnOffsetCommitResponse:
    answer = _commit(ctx, request, *await ctx.pieces.run(_look_up(ctx, request)))
    if isinstance(answer, Later):
        answer = await answer.response()
    response: m.TxnOffsetCommitResponse = answer
    return response


def _look_up(ctx: BrokerContext, request: Request[_Request]) -> Steps[_Found]:
    """The response, what is to be committed, and the answers of that."""
    response = m.TxnOffsetCommitResponse()
    commits: list[Commit] = []
    open_answers: list[_Partition] = []
    left = AT_ONCE
    for asked in request.body.topics:
        name, partition_count, missing = topic_of(ctx, asked, by_id=request.version >= IDS_FROM)
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
                    )
                )
            else:
                answer.error_code = missing
            answers.append(answer)
        response.topics.append(_Topic(name=asked.name, topic_id=asked.topic_id, partitions=answers))
    return response, commits, open_answers


def _commit(
    ctx: BrokerContext,
    request: Request[_Request],
    response: m.TxnOffsetCommitResponse,
    commits: list[Commit],
    open_answers: list[_Partition],
) -> Any:
    if not commits:
        return response
    body = request.body
    later = Later()

    def done(error: ErrorCode, errors: list[ErrorCode] | None) -> None:
        for at, answer in enumerate(open_answers):
            answer.error_code = error if errors is None else errors[at]
        later.give(response)

    def verified(error: ErrorCode, guard: object | None) -> None:
        if error is not ErrorCode.NONE:
            done(error, None)
            return
        ctx.groups.manager().commit_offsets(
            body.group_id,
            Committer(body.member_id, body.group_instance_id, body.generation_id_or_member_epoch),
            request.version,
            commits,
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

"""AddPartitionsToTxn (24), versions 0-5: partitions become part of a transaction.

v0-3 are a client's: one transaction, an error for each partition; where one of them is not there nothing is
added and the others get 55. v2+: a producer that was replaced hears 90, before 47. v4+ are for brokers: many
transactions, which are added to or only looked up (VerifyOnly).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.paced import paced
from broker.handlers.request import Request
from coordinator.result import CoordinatorError
from coordinator.transaction.state import TopicPartition
from coordinator.transaction.transitions import OWN_EPOCHS, Known
from protocol import messages as m
from protocol.errors import ErrorCode

FENCED_FROM: Final = 2
BATCHED_FROM: Final = 4

_Request = m.AddPartitionsToTxnRequest
_Topic = m.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
_Partition = m.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
_Result = m.AddPartitionsToTxnResponse.AddPartitionsToTxnResult
_Errors = dict[TopicPartition, ErrorCode]


def handle(ctx: BrokerContext, request: Request[_Request]) -> Any:
    """The answer, or a `Later` until the additions are committed."""
    body, version = request.body, request.version
    if version >= BATCHED_FROM:
        return _handle_many(ctx, body)
    asked = _Request.AddPartitionsToTxnTransaction(
        transactional_id=body.v3_and_below_transactional_id,
        producer_id=body.v3_and_below_producer_id,
        producer_epoch=body.v3_and_below_producer_epoch,
        topics=body.v3_and_below_topics,
    )
    later = Later()

    def done(errors: _Errors) -> None:
        topics = _topics(asked.topics, errors, version)
        later.give(m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics))

    _serve(ctx, asked, 0, done)
    return later.now_or_later()


def _handle_many(ctx: BrokerContext, body: _Request) -> Any:
    response = m.AddPartitionsToTxnResponse()
    left = len(body.transactions)
    if not left:
        return response
    later = Later()

    def serve(asked: _Request.AddPartitionsToTxnTransaction) -> None:
        result = _Result(transactional_id=asked.transactional_id)
        response.results_by_transaction.append(result)

        def done(errors: _Errors) -> None:
            nonlocal left
            result.topic_results = _topics(asked.topics, errors, BATCHED_FROM)
            left -= 1
            if not left:
                later.give(response)

        _serve(ctx, asked, OWN_EPOCHS, done)

    return paced(ctx.pieces, body.transactions, serve, later.now_or_later, weigh=_weight)


def _weight(asked: _Request.AddPartitionsToTxnTransaction) -> int:
    return 1 + sum(len(topic.partitions) for topic in asked.topics)


def _serve(
    ctx: BrokerContext,
    asked: _Request.AddPartitionsToTxnTransaction,
    transaction_version: int,
    done: Callable[[_Errors], None],
) -> None:
    cells = _cells(asked.topics)
    topics = ctx.image.topics
    missing = [
        (name, index)
        for name, index in cells
        if name not in topics or not 0 <= index < len(topics[name].partitions)
    ]
    if missing:
        errors = dict.fromkeys(cells, ErrorCode.OPERATION_NOT_ATTEMPTED)
        done(errors | dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return
    if asked.verify_only:
        done(_verify(ctx, asked, cells))
        return
    ctx.transactions.coordinator.manager().add_partitions(
        asked.transactional_id,
        Known(asked.producer_id, asked.producer_epoch),
        cells,
        transaction_version,
        lambda error, _: done(dict.fromkeys(cells, error)),
    )


def _verify(
    ctx: BrokerContext, asked: _Request.AddPartitionsToTxnTransaction, cells: list[TopicPartition]
) -> _Errors:
    known = Known(asked.producer_id, asked.producer_epoch)
    try:
        errors = ctx.transactions.coordinator.manager().verify(asked.transactional_id, known, cells)
    except CoordinatorError as refused:
        return dict.fromkeys(cells, refused.error)
    return dict(zip(cells, errors, strict=True))


def _cells(topics: Sequence[_Request.AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return list(dict.fromkeys((topic.name, index) for topic in topics for index in topic.partitions))


def _topics(
    topics: Sequence[_Request.AddPartitionsToTxnTopic], errors: _Errors, version: int
) -> list[_Topic]:
    """In the form of the request. Old versions do not know that a producer may be fenced."""
    return [
        _Topic(
            name=topic.name,
            results_by_partition=[
                _Partition(
                    partition_index=index, partition_error_code=told(errors[topic.name, index], version)
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def told(error: ErrorCode, version: int) -> ErrorCode:
    """The error as this version of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn knows it."""
    if error is ErrorCode.PRODUCER_FENCED and version < FENCED_FROM:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error

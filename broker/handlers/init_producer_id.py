"""InitProducerId (22), versions 0-5: a producer id, for an idempotent producer or a transactional one.

v3+: a producer may tell the id and epoch it has; one without the other is 42. v4+: a producer that was
replaced hears 90, PRODUCER_FENCED, before 47. Without a transactional id the answer is always a fresh id at
epoch 0, or 14 while the controller of a cluster gives none: ask again. With one, what was left open of a
transaction is aborted first, and 51 tells to ask again until that is over. 42 for an empty id, 50 for a
time-out outside 1 to transaction.max.timeout.ms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import NoBlock

if TYPE_CHECKING:
    from coordinator.transaction.shard import Producer
    from coordinator.transaction.transitions import Need

Done: TypeAlias = "Callable[[ErrorCode, Producer | Need | None], None]"

MIN_VERSION: Final = 0
MAX_VERSION: Final = 5
FENCED_FROM: Final = 4

_NONE: Final = -1


async def handle(ctx: BrokerContext, request: Request[m.InitProducerIdRequest]) -> m.InitProducerIdResponse:
    """An id with its epoch, or the error."""
    body = request.body
    error = _refusal(ctx, body)
    if error != ErrorCode.NONE:
        return _refused(error, request.version)
    try:
        if body.transactional_id is None:
            return m.InitProducerIdResponse(producer_id=await ctx.producer_ids.next_id(), producer_epoch=0)
        return await _init(ctx, request)
    except NoBlock:
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, request.version)


async def _init(ctx: BrokerContext, request: Request[m.InitProducerIdRequest]) -> m.InitProducerIdResponse:
    from coordinator.transaction.transitions import Known

    body = request.body
    known = None if body.producer_id == _NONE else Known(body.producer_id, body.producer_epoch)

    def ask(fresh_id: int | None, done: Done) -> None:
        ctx.transactions.coordinator.manager().init_producer(
            body.transactional_id or "", known, body.transaction_timeout_ms, fresh_id, done
        )

    error, producer = await with_fresh_id(ctx, ask)
    if producer is None:
        return _refused(error, request.version)
    return m.InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)


async def with_fresh_id(
    ctx: BrokerContext, ask: Callable[[int | None, Done], None]
) -> tuple[ErrorCode, Producer | None]:
    """What the coordinator answers, with a fresh producer id where it needs one. Raises NoBlock."""
    from coordinator.transaction.transitions import Need

    fresh_id: int | None = None
    while True:
        later = Later()
        ask(fresh_id, lambda error, answer, later=later: later.give((error, answer)))  # type: ignore[misc]
        error, answer = await later.response()
        if answer is not Need.ID:
            return error, answer
        fresh_id = await ctx.producer_ids.next_id()


def _refused(error: ErrorCode, version: int) -> m.InitProducerIdResponse:
    if error is ErrorCode.PRODUCER_FENCED and version < FENCED_FROM:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return m.InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)


def _refusal(ctx: BrokerContext, body: m.InitProducerIdRequest) -> ErrorCode:
    if (body.producer_id == _NONE) != (body.producer_epoch == _NONE):
        return ErrorCode.INVALID_REQUEST
    if body.transactional_id is None:
        return ErrorCode.NONE
    if not body.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < body.transaction_timeout_ms <= ctx.config.integer("transaction.max.timeout.ms"):
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE

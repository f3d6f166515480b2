"""InitProducerId (22), versions 0-5: a producer id for an idempotent producer.

v3+: a producer may tell the id and epoch it has; one without the other is 42. Without a transactional id the
answer is always a fresh id at epoch 0, or 14 while the controller of a cluster gives none: ask again.
A transactional id needs a transaction coordinator, which this broker does not have yet (FindCoordinator says
so). The few clients that come here all the same get 42 for an empty id, 50 for a time-out outside 1 to
transaction.max.timeout.ms, else 15: the coordinator is not available.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import NoBlock

MIN_VERSION: Final = 0
MAX_VERSION: Final = 5

_NONE: Final = -1


async def handle(ctx: BrokerContext, request: Request[m.InitProducerIdRequest]) -> m.InitProducerIdResponse:
    """A fresh id, or the error."""
    error = _refusal(ctx, request.body)
    if error == ErrorCode.NONE:
        try:
            return m.InitProducerIdResponse(producer_id=await ctx.producer_ids.next_id(), producer_epoch=0)
        except NoBlock:
            error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
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
    return ErrorCode.COORDINATOR_NOT_AVAILABLE

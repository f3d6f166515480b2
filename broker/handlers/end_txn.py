"""EndTxn (26), versions 0-5: commit or abort a transaction.

The answer comes when the decision is in the log; the markers follow. v2+: a producer that was replaced hears
90, before 47. v5: transactions with epochs of their own (KIP-890): the answer names the producer id and epoch
of the next transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.context import BrokerContext
from broker.handlers.add_partitions_to_txn import told
from broker.handlers.later import Later
from broker.handlers.request import Request
from coordinator.transaction.transitions import OWN_EPOCHS, Known, Need
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import NoBlock

if TYPE_CHECKING:
    from coordinator.transaction.shard import Producer

OWN_EPOCHS_FROM: Final = 5


async def handle(ctx: BrokerContext, request: Request[m.EndTxnRequest]) -> m.EndTxnResponse:
    """The answer when the decision is committed."""
    body, version = request.body, request.version
    known = Known(body.producer_id, body.producer_epoch)
    own_epochs = OWN_EPOCHS if version >= OWN_EPOCHS_FROM else 0
    fresh_id: int | None = None
    while True:
        later = Later()

        def done(error: ErrorCode, answer: Producer | Need | None, later: Later = later) -> None:
            later.give((error, answer))

        ctx.transactions.coordinator.manager().end(
            body.transactional_id, known, body.committed, own_epochs, fresh_id, done
        )
        error, answer = await later.response()
        if answer is Need.ID:
            try:
                fresh_id = await ctx.producer_ids.next_id()
            except NoBlock:
                return m.EndTxnResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        elif error != ErrorCode.NONE or not own_epochs:
            return m.EndTxnResponse(error_code=told(error, version))
        else:
            return m.EndTxnResponse(producer_id=answer.producer_id, producer_epoch=answer.epoch)

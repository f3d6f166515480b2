"""EndTxn (26), versions 0-5: commit or abort a transaction.

The answer comes when the decision is in the log; the markers follow. v2+: a producer that was replaced hears
90, before 47. v5: transactions with epochs of their own (KIP-890): the answer names the producer id and epoch
of the next transaction.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.add_partitions_to_txn import told
from broker.handlers.init_producer_id import Done, with_fresh_id
from broker.handlers.request import Request
from coordinator.transaction.transitions import OWN_EPOCHS, Known
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import NoBlock

OWN_EPOCHS_FROM: Final = 5


async def handle(ctx: BrokerContext, request: Request[m.EndTxnRequest]) -> m.EndTxnResponse:
    """The answer when the decision is committed."""
    body, version = request.body, request.version
    known = Known(body.producer_id, body.producer_epoch)
    own_epochs = OWN_EPOCHS if version >= OWN_EPOCHS_FROM else 0

    def ask(fresh_id: int | None, done: Done) -> None:
        ctx.transactions.coordinator.manager().end(
            body.transactional_id, known, body.committed, own_epochs, fresh_id, done
        )

    try:
        error, producer = await with_fresh_id(ctx, ask)
    except NoBlock:
        return m.EndTxnResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    if producer is None or not own_epochs:
        return m.EndTxnResponse(error_code=told(error, version))
    return m.EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)

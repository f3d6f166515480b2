"""AddOffsetsToTxn (25), versions 0-4: the offsets of a group become part of a transaction.

That is the group's partition of `__consumer_offsets`. v2+: a producer that was replaced hears 90, before 47.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.groups import TOPIC as OFFSETS
from broker.handlers.add_partitions_to_txn import told
from broker.handlers.later import Later
from broker.handlers.request import Request
from coordinator.result import CoordinatorError
from coordinator.transaction.transitions import Known
from protocol import messages as m
from protocol.errors import ErrorCode


def handle(ctx: BrokerContext, request: Request[m.AddOffsetsToTxnRequest]) -> Any:
    """The answer, or a `Later` until the addition is committed."""
    body = request.body
    later = Later()

    def done(error: ErrorCode, _: None) -> None:
        later.give(m.AddOffsetsToTxnResponse(error_code=told(error, request.version)))

    try:
        partition = ctx.groups.manager().runtime.partition_for(body.group_id)
    except CoordinatorError as refused:
        return m.AddOffsetsToTxnResponse(error_code=refused.error)
    known = Known(body.producer_id, body.producer_epoch)
    ctx.transactions.coordinator.manager().add_partitions(
        body.transactional_id, known, [(OFFSETS, partition)], 0, done
    )
    return later.now_or_later()

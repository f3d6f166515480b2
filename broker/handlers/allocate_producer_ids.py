"""AllocateProducerIds (67), version 0: a block of producer ids for a broker (KIP-730)."""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m

MIN_VERSION: Final = 0
MAX_VERSION: Final = 0


async def handle(
    ctx: BrokerContext, request: Request[m.AllocateProducerIdsRequest]
) -> m.AllocateProducerIdsResponse:
    """The block; 41 where this is not the controller, 77 and 102 for a broker that is not registered so."""
    body = request.body
    error, first, count = await ctx.in_cluster.admin.allocate_producer_ids(body.broker_id, body.broker_epoch)
    return m.AllocateProducerIdsResponse(error_code=error, producer_id_start=first, producer_id_len=count)

"""ControlledShutdown (7), versions 0-3: a broker that is about to stop gives its leaderships away (KIP-188).

v2 broker epoch; older ones are taken for the present registration.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m

MIN_VERSION: Final = 0
MAX_VERSION: Final = 3


async def handle(
    ctx: BrokerContext, request: Request[m.ControlledShutdownRequest]
) -> m.ControlledShutdownResponse:
    """The partitions that the broker still leads; 41 where this is not the controller."""
    body = request.body
    error, remaining = await ctx.in_cluster.admin.controlled_shutdown(body.broker_id, body.broker_epoch)
    return m.ControlledShutdownResponse(
        error_code=error,
        remaining_partitions=[
            m.ControlledShutdownResponse.RemainingPartition(topic_name=topic, partition_index=index)
            for topic, index in remaining
        ],
    )

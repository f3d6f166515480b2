"""StopReplica (5), versions 0-4: replicas leave this broker.

v1 broker epoch, v3 leader epochs and whether to delete for each partition.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m

MIN_VERSION: Final = 0
MAX_VERSION: Final = 4


async def handle(ctx: BrokerContext, request: Request[m.StopReplicaRequest]) -> m.StopReplicaResponse:
    """Stop them, with or without their logs."""
    return await ctx.in_cluster.stop_replica.handle(request.body)

"""UpdateMetadata (6), versions 0-8: the controller tells what the cluster looks like.

v3 listeners' names, v4 offline replicas, v5 broker epoch and topics grouped, v7 topic ids, v8 whether the
controller is of KRaft.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m

MIN_VERSION: Final = 0
MAX_VERSION: Final = 8


async def handle(ctx: BrokerContext, request: Request[m.UpdateMetadataRequest]) -> m.UpdateMetadataResponse:
    """Publish it."""
    return await ctx.in_cluster.update_metadata.handle(request.body)

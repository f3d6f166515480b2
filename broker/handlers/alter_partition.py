"""AlterPartition (56), versions 0-3: a leader asks the controller to change an ISR (KIP-497).

v1 recovery state, v2 topic ids, v3 broker epochs of the members.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m

MIN_VERSION: Final = 0
MAX_VERSION: Final = 3


async def handle(ctx: BrokerContext, request: Request[m.AlterPartitionRequest]) -> m.AlterPartitionResponse:
    """What became of each partition; 41 where this is not the controller."""
    return await ctx.in_cluster.admin.alter_partition(request.body, request.version)

"""LeaderAndIsr (4), versions 0-7: the controller gives this broker the roles of its replicas.

v1 isNew, v2 broker epoch and topics grouped, v3 reassignments, v5 topic ids, v6 recovery state, v7 whether
the controller is of KRaft.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m

MIN_VERSION: Final = 0
MAX_VERSION: Final = 7


async def handle(ctx: BrokerContext, request: Request[m.LeaderAndIsrRequest]) -> m.LeaderAndIsrResponse:
    """Take the roles; a topic that is new here is made with its stored settings."""
    cluster, body = ctx.in_cluster, request.body
    named = [each.topic_name for each in body.topic_states]
    named += [each.topic_name for each in body.ungrouped_partition_states]
    await cluster.changes.read_topics([t for t in dict.fromkeys(named) if t not in ctx.image.topics])
    return await cluster.leader_and_isr.handle(body, request.version)

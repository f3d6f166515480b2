"""ConsumerGroupHeartbeat (68), versions 0-1: a member of a consumer group joins, stays, or leaves (KIP-848).

v1 has regular expressions, and the client makes its member id. The rules are in
`coordinator.group.consumer`. While the protocol is not enabled every request is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from coordinator.group.consumer.heartbeat import Caller
from protocol import messages as m
from protocol.errors import ErrorCode


def handle(ctx: BrokerContext, request: Request[m.ConsumerGroupHeartbeatRequest]) -> Any:
    """The answer, or a `Later` until what the heartbeat has changed is committed."""
    later = Later()

    def done(error: ErrorCode, response: m.ConsumerGroupHeartbeatResponse | None) -> None:
        later.give(m.ConsumerGroupHeartbeatResponse(error_code=error) if response is None else response)

    ctx.groups.manager().consumer_heartbeat(
        request.body,
        request.version,
        Caller(request.header.client_id or "", f"/{request.peer_ip}"),
        done,
    )
    return later.now_or_later()

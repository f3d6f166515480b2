"""ShareGroupHeartbeat (76), version 1: a member of a share group joins, stays, or leaves (KIP-932).

The client makes its member id. The rules are in `coordinator.group.share`. While share groups are off every
request is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from broker.handlers.share_groups import share_requests
from broker.handlers.share_requests import MEMBER_ID_MAX
from protocol import messages as m
from protocol.errors import ErrorCode


def handle(ctx: BrokerContext, request: Request[m.ShareGroupHeartbeatRequest]) -> Any:
    """The answer, or a `Later` until what the heartbeat has changed is committed."""
    body = request.body
    requests = share_requests(ctx)
    if requests is None:
        return m.ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not body.member_id or len(body.member_id) > MEMBER_ID_MAX:
        return m.ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
    later = Later()
    requests.heartbeat(body, request.header.client_id or "", f"/{request.peer_ip}", later.give)
    return later.now_or_later()

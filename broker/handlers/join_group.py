"""JoinGroup (11), versions 0-9: a member of a classic group takes part in the next generation.

The answer comes when the join phase is over. Its rules are those of `coordinator.group.classic`.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from coordinator.group.classic.replies import join_refused
from coordinator.group.classic.requests import join_event
from coordinator.result import CoordinatorError
from protocol import messages as m


def handle(ctx: BrokerContext, request: Request[m.JoinGroupRequest]) -> Any:
    """The answer, or a `Later` while the member is parked."""
    body, version = request.body, request.version
    client_id, host = request.header.client_id or "", f"/{request.peer_ip}"
    later = Later()
    try:
        ctx.groups.manager().handle(
            body.group_id, lambda token: join_event(token, version, body, client_id, host), later.give
        )
    except CoordinatorError as refused:
        return join_refused(version, refused.error, body.member_id)
    return later.now_or_later()

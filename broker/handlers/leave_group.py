"""LeaveGroup (13), versions 0-5: one member leaves (v0-2), or many with an error each (v3+)."""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from coordinator.group.classic.requests import leave_event
from coordinator.result import CoordinatorError
from protocol import messages as m


def handle(ctx: BrokerContext, request: Request[m.LeaveGroupRequest]) -> Any:
    """The answer, or a `Later` until the group's emptiness is written."""
    body, version = request.body, request.version
    later = Later()
    try:
        ctx.groups.manager().handle(
            body.group_id, lambda token: leave_event(token, version, body), later.give
        )
    except CoordinatorError as refused:
        return m.LeaveGroupResponse(error_code=refused.error)
    return later.now_or_later()

"""LeaveGroup (13), versions 0-5: one member leaves (v0-2), or many with an error each (v3+)."""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from coordinator.group.classic.requests import leave_event
from coordinator.result import CoordinatorError
from protocol import messages as m
from runtime.pieces import AT_ONCE


def handle(ctx: BrokerContext, request: Request[m.LeaveGroupRequest]) -> Any:
    """The answer, or a `Later` until the group's emptiness is written."""
    body = request.body
    if len(body.members) > AT_ONCE:
        return _leave_in_pieces(ctx, request)
    return _leave(ctx, request.version, body)


def _leave(ctx: BrokerContext, version: int, body: m.LeaveGroupRequest) -> Any:
    later = Later()
    try:
        ctx.groups.manager().handle(
            body.group_id, lambda token: leave_event(token, version, body), later.give
        )
    except CoordinatorError as refused:
        return m.LeaveGroupResponse(error_code=refused.error)
    return later.now_or_later()


async def _leave_in_pieces(ctx: BrokerContext, request: Request[m.LeaveGroupRequest]) -> m.LeaveGroupResponse:
    """As if they left in several requests, one behind the other."""
    whole = m.LeaveGroupResponse()
    async for members in ctx.pieces.of(request.body.members):
        body = m.LeaveGroupRequest(group_id=request.body.group_id, members=list(members))
        answer = _leave(ctx, request.version, body)
        if isinstance(answer, Later):
            answer = await answer.response()
        if answer.error_code:
            refused: m.LeaveGroupResponse = answer
            return refused
        whole.members += answer.members
    return whole

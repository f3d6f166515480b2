"""SyncGroup (14), versions 0-5: the leader hands over the assignments, every member gets its own.

The answer comes with the leader's. v5+: the member says which protocol it took, and has to. The rules are
those of `coordinator.group.classic`.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from coordinator.group.classic.replies import sync_refused
from coordinator.group.classic.requests import sync_event
from coordinator.result import CoordinatorError
from protocol import messages as m
from protocol.errors import ErrorCode

PROTOCOL_NAMED_FROM = 5


def handle(ctx: BrokerContext, request: Request[m.SyncGroupRequest]) -> Any:
    """The answer, or a `Later` until the leader has synced."""
    body, version = request.body, request.version
    if version >= PROTOCOL_NAMED_FROM and (body.protocol_type is None or body.protocol_name is None):
        return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    later = Later()
    try:
        ctx.groups.manager().handle(body.group_id, lambda token: sync_event(token, version, body), later.give)
    except CoordinatorError as refused:
        return sync_refused(refused.error)
    return later.now_or_later()

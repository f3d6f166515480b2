"""SyncGroup (14), versions 0-5: the leader hands over the assignments, every member gets its own.

The answer comes with the leader's. Its rules are those of `coordinator.group.classic`.
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


def handle(ctx: BrokerContext, request: Request[m.SyncGroupRequest]) -> Any:
    """The answer, or a `Later` until the leader has synced."""
    body, version = request.body, request.version
    later = Later()
    try:
        ctx.groups.manager().handle(body.group_id, lambda token: sync_event(token, version, body), later.give)
    except CoordinatorError as refused:
        return sync_refused(refused.error)
    return later.now_or_later()

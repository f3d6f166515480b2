"""Heartbeat (12), versions 0-4: a member of a classic group is alive.

While the group's partition is loading the answer is NONE: the member will be heard again soon enough, and
every other answer would make it look for its coordinator.

The connection remembers a good one, as the next will be its like (heartbeat_shape).
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.heartbeat_shape import HeartbeatShape
from broker.handlers.later import Later
from broker.handlers.request import Request
from broker.net.connection import Connection
from coordinator.group.classic.requests import heartbeat_event
from coordinator.result import CoordinatorError
from protocol import messages as m
from protocol.errors import ErrorCode


def handle(ctx: BrokerContext, request: Request[m.HeartbeatRequest]) -> Any:
    """The answer."""
    body, version = request.body, request.version
    manager, connection = ctx.groups.manager(), request.connection
    later = Later()
    try:
        manager.handle(body.group_id, lambda token: heartbeat_event(token, version, body), later.give)
    except CoordinatorError as refused:
        loading = refused.error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return m.HeartbeatResponse(error_code=ErrorCode.NONE if loading else refused.error)
    answer = later.now_or_later()
    if isinstance(connection, Connection) and answer is not later and answer.error_code == ErrorCode.NONE:
        connection.remember(HeartbeatShape(manager, request))
    return answer

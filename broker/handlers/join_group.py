"""JoinGroup (11), versions 0-9: a member of a classic group takes part in the next generation.

The answer comes when the join phase is over. Its rules are those of `coordinator.group.classic`. A name from
which no member id could be made, as it would be too long for a string, is refused here.
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
from protocol.errors import ErrorCode

NAME_BYTES_MAX = 32767 - len("-01234567-89ab-cdef-0123-456789abcdef")


def handle(ctx: BrokerContext, request: Request[m.JoinGroupRequest]) -> Any:
    """The answer, or a `Later` while the member is parked."""
    body, version = request.body, request.version
    client_id, host = request.header.client_id or "", f"/{request.peer_ip}"
    name = client_id if body.group_instance_id is None else body.group_instance_id
    if len(name) * 4 > NAME_BYTES_MAX and len(name.encode()) > NAME_BYTES_MAX:
        return join_refused(version, ErrorCode.INVALID_REQUEST, body.member_id)
    later = Later()
    try:
        ctx.groups.manager().handle(
            body.group_id, lambda token: join_event(token, version, body, client_id, host), later.give
        )
    except CoordinatorError as refused:
        return join_refused(version, refused.error, body.member_id)
    return later.now_or_later()

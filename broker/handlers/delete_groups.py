"""DeleteGroups (42), versions 0-3: groups without members go, with everything that they committed.

v3: room for a message beside an error, which these errors do not need.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.paced import paced
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode

_Result = m.DeleteGroupsResponse.DeletableGroupResult


def handle(ctx: BrokerContext, request: Request[m.DeleteGroupsRequest]) -> Any:
    """The answer, or a `Later` until the deletions are committed. One result for each name."""
    names = list(dict.fromkeys(request.body.groups_names))
    response = m.DeleteGroupsResponse(results=[_Result(group_id=name) for name in names])
    left = len(names)
    if not left:
        return response
    later = Later()
    manager = ctx.groups.manager()

    def delete(result: _Result) -> None:
        def done(error: ErrorCode, _: None) -> None:
            nonlocal left
            result.error_code = error
            left -= 1
            if not left:
                later.give(response)

        manager.delete_group(result.group_id, done)

    def weigh(result: _Result) -> int:
        return 1 + len(manager.cells_of(result.group_id))

    return paced(ctx.pieces, response.results, delete, later.now_or_later, weigh=weigh)

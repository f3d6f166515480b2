"""DescribeGroups (15), versions 0-6: state, protocol and members of groups.

v3+: which operations the client may do, if asked. v4+: instance ids. v6: an absent group is an error, before
it is one in state Dead.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.paced import paced
from broker.handlers.repeats import bounded
from broker.handlers.request import Request
from broker.security.operations import GROUP_OPERATIONS
from coordinator.result import CoordinatorError
from protocol import messages as m
from protocol.errors import ErrorCode

_Group = m.DescribeGroupsResponse.DescribedGroup


def handle(ctx: BrokerContext, request: Request[m.DescribeGroupsRequest]) -> Any:
    """One answer for each group that is asked for; a name that is repeated is told again, to a bound."""
    response = m.DescribeGroupsResponse()

    def tell(name: str) -> None:
        group = _describe(ctx, name, request.version)
        if request.body.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
        response.groups.append(group)

    return paced(ctx.pieces, bounded(request.body.groups), tell, lambda: response)


def _describe(ctx: BrokerContext, group_id: str, version: int) -> _Group:
    try:
        return ctx.groups.manager().describe(group_id, version)
    except CoordinatorError as refused:
        return _Group(error_code=refused.error, group_id=group_id)

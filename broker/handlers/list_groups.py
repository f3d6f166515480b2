"""ListGroups (16), versions 0-5: the groups that this broker coordinates.

v4+: only those in some states; v5: only those of some types. An empty list lets all pass; the letters' case
does not matter, and what nobody knows matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.context import BrokerContext
from broker.handlers.request import Request
from coordinator.result import CoordinatorError
from protocol import messages as m


def handle(ctx: BrokerContext, request: Request[m.ListGroupsRequest]) -> m.ListGroupsResponse:
    """The groups that pass the filters."""
    try:
        groups = ctx.groups.manager().list_groups()
    except CoordinatorError as refused:
        return m.ListGroupsResponse(error_code=refused.error)
    states, types = _folded(request.body.states_filter), _folded(request.body.types_filter)
    return m.ListGroupsResponse(
        groups=[
            group
            for group in groups
            if (not states or group.group_state.lower() in states)
            and (not types or group.group_type.lower() in types)
        ]
    )


def _folded(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)

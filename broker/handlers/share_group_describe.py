"""ShareGroupDescribe (77), version 1: share groups with their members and assignments (KIP-932).

Groups of other types are GROUP_ID_NOT_FOUND, as groups that do not exist. Authorized operations are told only
when they are asked for.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.paced import paced
from broker.handlers.repeats import bounded
from broker.handlers.request import Request
from broker.handlers.share_groups import share_requests
from broker.security.operations import GROUP_OPERATIONS
from coordinator.group.share.groups import described_refused
from protocol import messages as m
from protocol.errors import ErrorCode


def handle(ctx: BrokerContext, request: Request[m.ShareGroupDescribeRequest]) -> Any:
    """The groups in the order of the request; repeated ones to a bound."""
    requests = share_requests(ctx)
    response = m.ShareGroupDescribeResponse()

    def tell(group_id: str) -> None:
        if requests is None:
            group = described_refused(group_id, ErrorCode.UNSUPPORTED_VERSION, None)
        else:
            group = requests.describe(group_id)
        if request.body.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
        response.groups.append(group)

    return paced(ctx.pieces, bounded(request.body.group_ids), tell, lambda: response)

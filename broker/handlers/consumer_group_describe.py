"""ConsumerGroupDescribe (69), versions 0-1: consumer groups with their members and assignments (KIP-848).

v1 tells members of the classic protocol from the others. Groups of other types are GROUP_ID_NOT_FOUND, as
groups that do not exist. Authorized operations are told only when they are asked for.
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


def handle(ctx: BrokerContext, request: Request[m.ConsumerGroupDescribeRequest]) -> Any:
    """The groups in the order of the request; repeated ones to a bound."""
    response = m.ConsumerGroupDescribeResponse()

    def tell(group_id: str) -> None:
        try:
            group = ctx.groups.manager().consumer_describe(group_id)
        except CoordinatorError as refused:
            off = refused.error is ErrorCode.UNSUPPORTED_VERSION  # the protocol is: Kafka gives no reason
            group = m.ConsumerGroupDescribeResponse.DescribedGroup(
                error_code=refused.error,
                error_message=None if off else refused.error.message,
                group_id=group_id,
                group_state="",
                assignor_name="",
            )
        if request.body.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
        response.groups.append(group)

    return paced(ctx.pieces, bounded(request.body.group_ids), tell, lambda: response)

"""DescribeCluster (60), versions 0-2.

v1+: the client says whether it wants brokers (1) or controllers (2); a broker knows only brokers: 114, any
other number 115. v2+: fenced brokers on request (a registered broker is never fenced here).
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.endpoints import brokers_with_listener
from broker.handlers.request import Request
from broker.security.operations import CLUSTER_OPERATIONS, NOT_ASKED
from protocol import messages as m
from protocol.errors import ErrorCode

MIN_VERSION: Final = 0
MAX_VERSION: Final = 2

_BROKERS, _CONTROLLERS = 1, 2


def handle(ctx: BrokerContext, request: Request[m.DescribeClusterRequest]) -> m.DescribeClusterResponse:
    """Brokers, controller, cluster id."""
    kind = request.body.endpoint_type
    if kind == _CONTROLLERS:
        return _refused(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER",
        )
    if kind != _BROKERS:
        return _refused(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}")
    image = ctx.image
    brokers = brokers_with_listener(image, request.listener_name)
    return m.DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id if image.controller_id in brokers else -1,
        brokers=[
            m.DescribeClusterResponse.DescribeClusterBroker(
                broker_id=broker.broker_id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker, endpoint in brokers.values()
        ],
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.body.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _refused(error: ErrorCode, message: str) -> m.DescribeClusterResponse:
    return m.DescribeClusterResponse(error_code=error, error_message=message, controller_id=-1)

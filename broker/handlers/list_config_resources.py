"""ListConfigResources (74), versions 0-1: which resources have a configuration (KIP-1142).

v0 asks for client metrics only. v1: types, none meaning all; a type that is not supported: 35.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.metadata.configs import ConfigType
from replication.metadata.image import ClusterImage

MIN_VERSION: Final = 0
MAX_VERSION: Final = 1


def _broker_ids(image: ClusterImage) -> Iterable[str]:
    return (str(broker_id) for broker_id in image.brokers)


def _stored(kind: ConfigType) -> Callable[[ClusterImage], Iterable[str]]:
    return lambda image: (resource.name for resource in image.configs if resource.type == kind)


_NAMES: Final[dict[int, Callable[[ClusterImage], Iterable[str]]]] = {
    ConfigType.GROUP: _stored(ConfigType.GROUP),
    ConfigType.CLIENT_METRICS: _stored(ConfigType.CLIENT_METRICS),
    ConfigType.BROKER_LOGGER: _broker_ids,
    ConfigType.BROKER: _broker_ids,
    ConfigType.TOPIC: lambda image: image.topics,
}


def handle(
    ctx: BrokerContext, request: Request[m.ListConfigResourcesRequest]
) -> m.ListConfigResourcesResponse:
    """The names, type by type."""
    asked: Iterable[int] = dict.fromkeys(request.body.resource_types)
    if request.version == 0:
        asked = (ConfigType.CLIENT_METRICS,)
    if any(kind not in _NAMES for kind in asked):
        return m.ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return m.ListConfigResourcesResponse(
        config_resources=[
            m.ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in (asked or _NAMES)
            for name in _NAMES[kind](ctx.image)
        ]
    )

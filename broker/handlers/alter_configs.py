"""AlterConfigs (33), versions 0-2: the overrides that a resource has from now on; all others go.

Topics, brokers, groups and client metrics subscriptions; a broker's values go to that broker. A resource
named twice: 42 for each mention.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.config_resources import by_resource, stored_resource
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import Refused
from replication.metadata.configs import ConfigResource

MIN_VERSION: Final = 0
MAX_VERSION: Final = 2


async def handle(ctx: BrokerContext, request: Request[m.AlterConfigsRequest]) -> m.AlterConfigsResponse:
    """One answer for each resource, in order."""
    body = request.body
    named: list[ConfigResource | Refused] = []
    wanted: list[tuple[ConfigResource, list[tuple[str, str | None]]]] = []
    async for some in ctx.pieces.of(body.resources):
        for each in some:
            try:
                resource = stored_resource(ctx, each.resource_type, each.resource_name)
                named.append(resource)
                wanted.append((resource, [(config.name, config.value) for config in each.configs]))
            except Refused as refused:
                named.append(refused)
    done = by_resource(await ctx.controller.replace_configs(wanted, validate_only=body.validate_only))
    response = m.AlterConfigsResponse()
    async for pairs in ctx.pieces.of(list(zip(body.resources, named, strict=True))):
        for each, what in pairs:
            error, message = (
                (what.error, what.message)
                if isinstance(what, Refused)
                else (done[what].error, done[what].message)
            )
            response.responses.append(
                m.AlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=error,
                    error_message=message if error != ErrorCode.NONE else None,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
            )
    return response

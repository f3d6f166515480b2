"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to and subtract from single keys (KIP-339).

Topics, brokers, groups and client metrics subscriptions are changed by the controller, each resource as a
whole or not at all. The levels of this broker's loggers (KIP-412) are changed here and last until it stops.
A resource named twice: 42 for each mention.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from broker.context import BrokerContext
from broker.handlers.config_resources import by_resource, check_node, stored_resource
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import Refused
from replication.metadata.configs import ConfigChange, ConfigRefused, ConfigResource, ConfigType

MIN_VERSION: Final = 0
MAX_VERSION: Final = 1

_Answer = tuple[ErrorCode, str | None]


async def handle(
    ctx: BrokerContext, request: Request[m.IncrementalAlterConfigsRequest]
) -> m.IncrementalAlterConfigsResponse:
    """One answer for each resource, in order."""
    body = request.body
    times = Counter((each.resource_type, each.resource_name) for each in body.resources)
    answers: list[_Answer | ConfigResource] = []
    wanted: list[tuple[ConfigResource, list[ConfigChange]]] = []
    async for some in ctx.pieces.of(body.resources):
        for each in some:
            changes = [ConfigChange(c.name, c.config_operation, c.value) for c in each.configs]
            try:
                if times[each.resource_type, each.resource_name] > 1:
                    raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                if each.resource_type == ConfigType.BROKER_LOGGER:
                    _alter_loggers(ctx, each.resource_name, changes, body.validate_only)
                    answers.append((ErrorCode.NONE, None))
                    continue
                resource = stored_resource(ctx, each.resource_type, each.resource_name)
                answers.append(resource)
                wanted.append((resource, changes))
            except (Refused, ConfigRefused) as refused:
                answers.append((refused.error, refused.message))
    done = by_resource(await ctx.controller.alter_configs(wanted, validate_only=body.validate_only))
    response = m.IncrementalAlterConfigsResponse()
    async for pairs in ctx.pieces.of(list(zip(body.resources, answers, strict=True))):
        for each, answer in pairs:
            if isinstance(answer, ConfigResource):
                answer = done[answer].error, done[answer].message
            response.responses.append(
                m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=answer[0],
                    error_message=answer[1] if answer[0] != ErrorCode.NONE else None,
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                )
            )
    return response


def _alter_loggers(ctx: BrokerContext, name: str, changes: list[ConfigChange], validate_only: bool) -> None:
    check_node(ctx, name, "Unexpected node id. Expected")
    if len({change.key for change in changes}) != len(changes):
        raise Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    ctx.loggers.check(changes)
    if not validate_only:
        ctx.loggers.alter(changes)

"""Shared by AlterConfigs and IncrementalAlterConfigs: which resources this broker can have altered."""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from protocol.errors import ErrorCode
from replication.controller.outcomes import ConfigOutcome, Refused
from replication.metadata.configs import ConfigResource, ConfigType

_STORED: Final = (ConfigType.TOPIC, ConfigType.BROKER, ConfigType.CLIENT_METRICS, ConfigType.GROUP)


def stored_resource(ctx: BrokerContext, kind: int, name: str) -> ConfigResource:
    """The resource of a request. Raises Refused (42) for a type whose values are not stored, for no name of
    a topic, a group or a metrics subscription, and for another broker.
    """
    if kind not in _STORED:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    if kind == ConfigType.TOPIC and not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    if kind == ConfigType.GROUP and not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    if kind == ConfigType.CLIENT_METRICS and not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    if kind == ConfigType.BROKER and name:
        check_node(ctx, name, "Unexpected broker id, expected")
    return ConfigResource(ConfigType(kind), name)


def check_node(ctx: BrokerContext, name: str, unexpected: str) -> None:
    """Refuse (42) a name that is not this broker's id."""
    if not (name.isascii() and name.isdigit()):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != ctx.node_id:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{unexpected} {ctx.node_id}, but received {name}")


def by_resource(outcomes: list[ConfigOutcome]) -> dict[ConfigResource, ConfigOutcome]:
    """What the controller said, by resource."""
    return {outcome.resource: outcome for outcome in outcomes}

"""DescribeConfigs (32), versions 0-4: settings in force, where they come from, what may change.

Resources: 2 topic, 4 broker (its id, or the empty name for the defaults of all), 8 broker logger, 16 client
metrics subscription, 32 group, both of which need not exist; others 42. v0 tells only whether a value is the
default; v1+ its source and, on request, all synonyms, the effective one first; v3+ the type and, on request,
what a key is for. Values of passwords, and of keys that nobody knows, are never shown. Keys that 4.0 dropped,
and internal ones, are listed where they are set.

A broker has 300 settings, so that a short request asks for much: a resource that is named twice is answered
once, and many of them are described with pauses for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from broker.config import documentation
from broker.config.broker_config import ConfigSource, Synonym
from broker.config.client_metrics import CLIENT_METRICS_KEYS
from broker.config.definitions import BROKER_KEYS, TOPIC_KEYS, ConfigKey, find_broker_key
from broker.config.values import format_value
from broker.context import BrokerContext
from broker.handlers.paced import paced
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication import topic_names
from replication.controller.outcomes import Refused
from replication.metadata.configs import ConfigResource, ConfigType

MIN_VERSION: Final = 0
MAX_VERSION: Final = 4

_AT_ONCE: Final = 20  # resources between two pauses: up to 50 ms

_Entry = m.DescribeConfigsResponse.DescribeConfigsResourceResult
_TEXTS: Final[dict[int, Callable[[str], str | None]]] = {
    ConfigType.TOPIC: documentation.topic_key_text,
    ConfigType.BROKER: documentation.broker_key_text,
    ConfigType.CLIENT_METRICS: documentation.client_metrics_key_text,
    ConfigType.GROUP: documentation.group_key_text,
}


def handle(ctx: BrokerContext, request: Request[m.DescribeConfigsRequest]) -> Any:
    """One result for each resource; a coroutine where they are many."""
    asked = list({(each.resource_type, each.resource_name): each for each in request.body.resources}.values())
    response = m.DescribeConfigsResponse()
    return paced(
        ctx.pieces,
        asked,
        lambda each: response.results.append(_result(ctx, each, request)),
        lambda: response,
        _AT_ONCE,
    )


def _result(
    ctx: BrokerContext,
    asked: m.DescribeConfigsRequest.DescribeConfigsResource,
    request: Request[m.DescribeConfigsRequest],
) -> m.DescribeConfigsResponse.DescribeConfigsResult:
    result = m.DescribeConfigsResponse.DescribeConfigsResult(
        error_message="", resource_type=asked.resource_type, resource_name=asked.resource_name
    )
    try:
        entries = _entries(ctx, asked.resource_type, asked.resource_name)
    except Refused as refused:
        result.error_code = refused.error
        result.error_message = refused.message or ""
        return result
    wanted = set(asked.configuration_keys) if asked.configuration_keys else None
    text_of = _TEXTS.get(asked.resource_type)
    for entry in entries:
        if wanted is None or entry.name in wanted:
            if not request.body.include_synonyms:
                entry.synonyms = []
            if request.body.include_documentation and text_of is not None:
                entry.documentation = text_of(entry.name)
            if request.version == 0:
                entry.is_default = entry.config_source == ConfigSource.DEFAULT_CONFIG
            result.configs.append(entry)
    return result


def _entries(
    ctx: BrokerContext, kind: int, name: str
) -> Iterable[m.DescribeConfigsResponse.DescribeConfigsResourceResult]:
    if kind == ConfigType.TOPIC:
        return _topic_entries(ctx, name)
    if kind == ConfigType.BROKER:
        return _broker_entries(ctx, name)
    if kind == ConfigType.BROKER_LOGGER:
        return _logger_entries(ctx, name)
    if kind == ConfigType.CLIENT_METRICS:
        return _client_metrics_entries(ctx, name)
    if kind == ConfigType.GROUP:
        return _group_entries(ctx, name)
    raise Refused(ErrorCode.INVALID_REQUEST, f"Unsupported resource type {kind}")


def _topic_entries(
    ctx: BrokerContext, name: str
) -> Iterable[m.DescribeConfigsResponse.DescribeConfigsResourceResult]:
    refusal = topic_names.refusal_of(name)
    if refusal is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, refusal)
    if name not in ctx.image.topics:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    overrides = ctx.image.overrides(ConfigResource(ConfigType.TOPIC, name))
    settings = ctx.topic_configs
    return [
        _entry(
            key,
            TOPIC_KEYS[key],
            format_value(settings.value(overrides, key)),
            settings.synonyms(overrides, key),
            read_only=False,
        )
        for key in settings.shown_names(overrides)
    ]


def _broker_entries(
    ctx: BrokerContext, name: str
) -> Iterable[m.DescribeConfigsResponse.DescribeConfigsResourceResult]:
    config = ctx.config
    if not name:
        return [
            _broker_entry(
                key,
                value,
                [s for s in config.synonyms(key) if s.source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG],
            )
            for key, value in config.dynamic_default.items()
        ]
    own_broker(ctx, name)
    shown = {
        key.name: None for key in BROKER_KEYS.values() if key.era != "<4" and not key.internal
    } | dict.fromkeys([*config.static, *config.dynamic_default, *config.dynamic_broker])
    return [
        _broker_entry(
            key,
            format_value(config[key]) if find_broker_key(key) is not None else None,
            config.synonyms(key),
        )
        for key in shown
    ]


def own_broker(ctx: BrokerContext, name: str) -> None:
    """Refuse (42) a broker name that is no number or another broker's id."""
    if not (name.isascii() and name.isdigit()):
        raise Refused(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != ctx.node_id:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {ctx.node_id} or empty string, but received {name}",
        )


def _broker_entry(
    name: str, value: str | None, synonyms: Sequence[Synonym]
) -> m.DescribeConfigsResponse.DescribeConfigsResourceResult:
    key = find_broker_key(name)
    return _entry(name, key, value, synonyms, read_only=key is None or not key.dynamic)


def _entry(
    name: str, key: ConfigKey | None, value: str | None, synonyms: Sequence[Synonym], *, read_only: bool
) -> m.DescribeConfigsResponse.DescribeConfigsResourceResult:
    sensitive = key is None or key.sensitive
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return _Entry(
        name=name,
        value=None if sensitive else value,
        read_only=read_only,
        config_source=source,
        is_sensitive=sensitive,
        synonyms=[
            m.DescribeConfigsResponse.DescribeConfigsSynonym(
                name=each.name, value=None if sensitive else each.value, source=each.source
            )
            for each in synonyms
        ],
        config_type=0 if key is None else key.wire_type,
        documentation=None,
    )


def _logger_entries(
    ctx: BrokerContext, name: str
) -> Iterable[m.DescribeConfigsResponse.DescribeConfigsResourceResult]:
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    own_broker(ctx, name)
    return [
        _Entry(
            name=logger,
            value=level,
            config_source=ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            documentation=None,
        )
        for logger, level in ctx.loggers.levels().items()
    ]


def _client_metrics_entries(
    ctx: BrokerContext, name: str
) -> Iterable[m.DescribeConfigsResponse.DescribeConfigsResourceResult]:
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    overrides = ctx.image.overrides(ConfigResource(ConfigType.CLIENT_METRICS, name))
    entries = []
    for key in CLIENT_METRICS_KEYS.values():
        text = overrides.get(key.name)
        synonyms = [] if text is None else [Synonym(key.name, text, ConfigSource.CLIENT_METRICS_CONFIG)]
        value = key.default if text is None else text
        entries.append(_entry(key.name, key, value, synonyms, read_only=False))
    return entries


def _group_entries(
    ctx: BrokerContext, name: str
) -> Iterable[m.DescribeConfigsResponse.DescribeConfigsResourceResult]:
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return [
        _entry(key.name, key, value, synonyms, read_only=False)
        for key, value, synonyms in ctx.group_configs.shown(name)
    ]

"""CreateTopics (19), versions 0-7.

v1+: validate_only, error messages. v4+: -1 stands for the broker's defaults (accepted at every version).
v5+: the answer tells partitions, replication factor and all settings. v7+: the topic id.
Refusals (name, counts, assignment, settings) are the controller's; a name given twice is answered once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.config.definitions import TOPIC_KEYS
from broker.config.values import format_value
from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import NewTopic, TopicOutcome

MIN_VERSION: Final = 0
MAX_VERSION: Final = 7

_Setting = m.CreateTopicsResponse.CreatableTopicConfigs


async def handle(ctx: BrokerContext, request: Request[m.CreateTopicsRequest]) -> m.CreateTopicsResponse:
    """Create what passes; one answer for each name."""
    body = request.body
    outcomes = await ctx.controller.create_topics(
        [
            NewTopic(
                topic.name,
                topic.num_partitions,
                topic.replication_factor,
                tuple((each.partition_index, tuple(each.broker_ids)) for each in topic.assignments),
                tuple((each.name, each.value) for each in topic.configs),
            )
            for topic in body.topics
        ],
        timeout_ms=body.timeout_ms,
        validate_only=body.validate_only,
    )
    return m.CreateTopicsResponse(topics=[_result(ctx, outcome) for outcome in outcomes])


def _result(ctx: BrokerContext, outcome: TopicOutcome) -> m.CreateTopicsResponse.CreatableTopicResult:
    created = outcome.error == ErrorCode.NONE
    return m.CreateTopicsResponse.CreatableTopicResult(
        name=outcome.name,
        topic_id=outcome.topic_id,
        error_code=outcome.error,
        error_message=outcome.message,
        num_partitions=outcome.num_partitions,
        replication_factor=outcome.replication_factor,
        configs=_settings(ctx, outcome.configs or {}) if created else [],
    )


def _settings(
    ctx: BrokerContext, overrides: Mapping[str, str]
) -> list[m.CreateTopicsResponse.CreatableTopicConfigs]:
    settings = ctx.topic_configs
    return [
        _Setting(
            name=name,
            value=None if TOPIC_KEYS[name].sensitive else format_value(settings.value(overrides, name)),
            config_source=settings.source_of(overrides, name),
            is_sensitive=TOPIC_KEYS[name].sensitive,
        )
        for name in settings.shown_names(overrides)
    ]

"""CreateTopics (19), versions 0-7.

v1+: validate_only, error messages. v4+: -1 stands for the broker's defaults (accepted at every version).
v5+: the answer tells partitions, replication factor and all settings. v7+: the topic id.
Refusals (name, counts, assignment, settings) are the controller's; a name given twice is answered once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from broker.config.definitions import TOPIC_KEYS
from broker.config.topic_configs import TopicConfigs
from broker.config.values import format_value
from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.outcomes import NewTopic, TopicOutcome

MIN_VERSION: Final = 0
MAX_VERSION: Final = 7

_Setting: TypeAlias = m.CreateTopicsResponse.CreatableTopicConfigs


_AT_ONCE: Final = 20  # topics that are answered for without a pause: 0.1 ms each, with settings of their own


async def handle(ctx: BrokerContext, request: Request[m.CreateTopicsRequest]) -> m.CreateTopicsResponse:
    """Create what passes; one answer for each name."""
    body = request.body
    wanted: list[NewTopic] = []
    async for asked in ctx.pieces.of(body.topics):
        wanted += [_wanted(topic) for topic in asked]
    outcomes = await ctx.controller.create_topics(
        wanted, timeout_ms=body.timeout_ms, validate_only=body.validate_only
    )
    response = m.CreateTopicsResponse()
    settings = _Settings(ctx.topic_configs)
    async for some in ctx.pieces.of(outcomes, _AT_ONCE):
        response.topics += [_result(settings, outcome) for outcome in some]
    return response


def _wanted(topic: m.CreateTopicsRequest.CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((each.partition_index, tuple(each.broker_ids)) for each in topic.assignments),
        tuple((each.name, each.value) for each in topic.configs),
    )


def _result(settings: _Settings, outcome: TopicOutcome) -> m.CreateTopicsResponse.CreatableTopicResult:
    created = outcome.error == ErrorCode.NONE
    return m.CreateTopicsResponse.CreatableTopicResult(
        name=outcome.name,
        topic_id=outcome.topic_id,
        error_code=outcome.error,
        error_message=outcome.message,
        num_partitions=outcome.num_partitions,
        replication_factor=outcome.replication_factor,
        configs=settings.shown(outcome.configs or {}) if created else [],
    )


class _Settings:
    """All settings of topics as the answer shows them; topics with the same overrides share theirs."""

    def __init__(self, configs: TopicConfigs) -> None:
        self._configs = configs
        self._known: dict[frozenset[tuple[str, str]], list[_Setting]] = {}

    def shown(self, overrides: Mapping[str, str]) -> list[_Setting]:
        key = frozenset(overrides.items())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = [
                self._setting(overrides, n) for n in self._configs.shown_names(overrides)
            ]
        return found

    def _setting(self, overrides: Mapping[str, str], name: str) -> _Setting:
        configs, sensitive = self._configs, TOPIC_KEYS[name].sensitive
        return _Setting(
            name=name,
            value=None if sensitive else format_value(configs.value(overrides, name)),
            config_source=configs.source_of(overrides, name),
            is_sensitive=sensitive,
        )

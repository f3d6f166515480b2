"""Which APIs this broker serves, at which versions, and who answers them.

Owns `HANDLERS` (everything but the hot APIs) and `SERVED_VERSIONS`, what ApiVersions tells: the handlers'
ranges and those of Produce and Fetch, which work on raw frames. An API is listed when it works end to end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers import (
    api_versions,
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_topic_partitions,
    metadata,
)
from broker.handlers.request import Request
from protocol.api_keys import ApiKey


@dataclass(slots=True, frozen=True)
class Handler:
    """One API: `handle(ctx, request)` returns the response, or a coroutine that does."""

    api_key: ApiKey
    min_version: int
    max_version: int
    handle: Callable[[BrokerContext, Request[Any]], Any]


_MODULES: Final = {
    ApiKey.METADATA: metadata,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
}

HANDLERS: Final[dict[ApiKey, Handler]] = {
    key: Handler(key, module.MIN_VERSION, module.MAX_VERSION, module.handle)
    for key, module in _MODULES.items()
}

HOT_VERSIONS: Final = {ApiKey.PRODUCE: (0, 13), ApiKey.FETCH: (0, 18)}

SERVED_VERSIONS: Final[dict[ApiKey, tuple[int, int]]] = dict(
    sorted([*HOT_VERSIONS.items(), *((h.api_key, (h.min_version, h.max_version)) for h in HANDLERS.values())])
)

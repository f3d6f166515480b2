"""FindCoordinator (10), versions 0-6: where a group, transactional id or share partition is looked after.

A group's coordinator leads its partition of `__consumer_offsets`. Where the topic is missing it is made
before the answer, so the first answer already names a coordinator that serves. Transactional ids and share
partitions have no coordinator yet and get 15, coordinator not available.
v1+: a message beside the code. v4+: many keys in one request, an answer for each. Key types: 0 group,
1 transaction, 2 share partition (v6); others are 42. Without a coordinator: node -1 at port -1.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode

MIN_VERSION: Final = 0
MAX_VERSION: Final = 6

BATCHED_FROM: Final = 4
SHARE_FROM: Final = 6
GROUP, TRANSACTION, SHARE = range(3)

_NOWHERE: Final = -1
_MISSING: Final = {
    TRANSACTION: "This broker has no transaction coordinator yet.",
    SHARE: "This broker has no share coordinator yet.",
}

_Found = m.FindCoordinatorResponse.Coordinator


def handle(
    ctx: BrokerContext, request: Request[m.FindCoordinatorRequest]
) -> m.FindCoordinatorResponse | Coroutine[Any, Any, m.FindCoordinatorResponse]:
    """The answer; a coroutine where the topic has to be made first."""
    body = request.body
    keys = body.coordinator_keys if request.version >= BATCHED_FROM else [body.key]
    if body.key_type == GROUP and keys and not ctx.groups.has_topic():
        return _create_and_answer(ctx, request, keys)
    return _answer(ctx, request, keys)


async def _create_and_answer(
    ctx: BrokerContext, request: Request[m.FindCoordinatorRequest], keys: list[str]
) -> m.FindCoordinatorResponse:
    await ctx.groups.create_topic()
    return _answer(ctx, request, keys)


def _answer(
    ctx: BrokerContext, request: Request[m.FindCoordinatorRequest], keys: list[str]
) -> m.FindCoordinatorResponse:
    version, kind = request.version, request.body.key_type
    if kind == GROUP:
        found = [_find_group(ctx, key, request.listener_name) for key in keys]
    else:
        error, message = _refusal(kind, version)
        found = [_nowhere(key, error, message) for key in keys]
    if version >= BATCHED_FROM:
        return m.FindCoordinatorResponse(coordinators=found)
    [one] = found
    return m.FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=(one.error_message or ErrorCode(one.error_code).message) if version >= 1 else None,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _find_group(ctx: BrokerContext, group_id: str, listener_name: str) -> _Found:
    broker = ctx.image.brokers.get(ctx.groups.coordinator_of(group_id))
    endpoint = broker.endpoints.get(listener_name) if broker is not None else None
    if broker is None or endpoint is None:
        return _nowhere(group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _Found(key=group_id, node_id=broker.broker_id, host=endpoint.host, port=endpoint.port)


def _refusal(key_type: int, version: int) -> tuple[ErrorCode, str]:
    if key_type not in _MISSING or (key_type == SHARE and version < SHARE_FROM):
        return ErrorCode.INVALID_REQUEST, f"There is no coordinator for key type {key_type}."
    return ErrorCode.COORDINATOR_NOT_AVAILABLE, _MISSING[key_type]


def _nowhere(key: str, error: ErrorCode, message: str | None = None) -> _Found:
    return _Found(
        key=key,
        error_code=error,
        error_message=error.message if message is None else message,
        node_id=_NOWHERE,
        port=_NOWHERE,
    )

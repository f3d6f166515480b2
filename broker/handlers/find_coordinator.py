"""FindCoordinator (10), versions 0-6: where a group, transactional id or share partition is looked after.

A group's coordinator leads its partition of `__consumer_offsets`, that of a share partition the one of
`__share_group_state`, that of a transactional id the one of `__transaction_state`. Where the topic is missing
it is made before the answer, so the first answer already names a coordinator that serves. The key of a share
partition is "group:topic id:partition", where the group may have colons, too;
what does not read as such is 42.
v1+: a message beside the code. v4+: many keys in one request, an answer for each. Key types: 0 group,
1 transaction, 2 share partition (v6); others are 42. Without a coordinator: node -1 at port -1.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from broker.context import BrokerContext
from broker.coordinators import CoordinatorLife
from broker.handlers.paced import paced
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.uuids import uuid_from_text, uuid_to_text

MIN_VERSION: Final = 0
MAX_VERSION: Final = 6

BATCHED_FROM: Final = 4
SHARE_FROM: Final = 6
GROUP, TRANSACTION, SHARE = range(3)

_NOWHERE: Final = -1
_INT32: Final = range(-(1 << 31), 1 << 31)

_Found = m.FindCoordinatorResponse.Coordinator


def handle(
    ctx: BrokerContext, request: Request[m.FindCoordinatorRequest]
) -> m.FindCoordinatorResponse | Coroutine[Any, Any, m.FindCoordinatorResponse]:
    """The answer; a coroutine where the topic has to be made first, or where many keys are asked for."""
    body = request.body
    keys = body.coordinator_keys if request.version >= BATCHED_FROM else [body.key]
    coordinators = _coordinators(ctx, body.key_type, request.version)
    if (
        coordinators is not None
        and not coordinators.has_topic()
        and any(_hashed(body.key_type, key) is not None for key in keys)
    ):
        return _create_and_answer(ctx, coordinators, request, keys)
    return _answer(ctx, coordinators, request, keys)


def _coordinators(ctx: BrokerContext, key_type: int, version: int) -> CoordinatorLife[Any] | None:
    if key_type == GROUP:
        return ctx.groups
    if key_type == TRANSACTION:
        return ctx.transactions.coordinator
    return ctx.share_state if key_type == SHARE and version >= SHARE_FROM else None


def _hashed(key_type: int, key: str) -> str | None:
    """What is hashed to find a key's partition; None for a key that can't be."""
    return key if key_type != SHARE else share_key(key)


def share_key(key: str) -> str | None:
    """The key of a share partition as it is hashed; None where it is malformed."""
    front, _, number = key.rstrip(":").rpartition(":")
    group_id, _, topic_id = front.rpartition(":")
    digits = number[1:] if number[:1] in ("+", "-") else number
    if not group_id.strip() or not (digits.isascii() and digits.isdigit()):
        return None
    try:
        partition, topic = int(number), uuid_to_text(uuid_from_text(topic_id))
    except ValueError:  # also of thousands of digits
        return None
    return f"{group_id}:{topic}:{partition}" if partition in _INT32 else None


async def _create_and_answer(
    ctx: BrokerContext,
    coordinators: CoordinatorLife[Any],
    request: Request[m.FindCoordinatorRequest],
    keys: list[str],
) -> m.FindCoordinatorResponse:
    await coordinators.create_topic()
    answer = _answer(ctx, coordinators, request, keys)
    return await answer if isinstance(answer, Coroutine) else answer


def _answer(
    ctx: BrokerContext,
    coordinators: CoordinatorLife[Any] | None,
    request: Request[m.FindCoordinatorRequest],
    keys: list[str],
) -> m.FindCoordinatorResponse | Coroutine[Any, Any, m.FindCoordinatorResponse]:
    """A coroutine where there are many keys."""
    kind = request.body.key_type
    found: list[_Found] = []

    def find(key: str) -> None:
        if coordinators is not None:
            found.append(_find(ctx, coordinators, kind, key, request.listener_name))
        else:
            message = f"There is no coordinator for key type {kind}."
            found.append(_nowhere(key, ErrorCode.INVALID_REQUEST, message))

    answer: m.FindCoordinatorResponse | Coroutine[Any, Any, m.FindCoordinatorResponse] = paced(
        ctx.pieces, keys, find, lambda: _response(found, request.version)
    )
    return answer


def _response(found: list[_Found], version: int) -> m.FindCoordinatorResponse:
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


def _find(
    ctx: BrokerContext, coordinators: CoordinatorLife[Any], key_type: int, key: str, listener_name: str
) -> _Found:
    hashed = _hashed(key_type, key)
    if hashed is None:
        return _nowhere(key, ErrorCode.INVALID_REQUEST)
    broker = ctx.image.brokers.get(coordinators.coordinator_of(hashed))
    endpoint = broker.endpoints.get(listener_name) if broker is not None else None
    if broker is None or endpoint is None:
        return _nowhere(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _Found(key=key, node_id=broker.broker_id, host=endpoint.host, port=endpoint.port)


def _nowhere(key: str, error: ErrorCode, message: str = "") -> _Found:
    return _Found(
        key=key,
        error_code=error,
        error_message=message,
        node_id=_NOWHERE,
        port=_NOWHERE,
    )

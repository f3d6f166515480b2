"""FindCoordinator (10), versions 0-6: where a group or transactional id is looked after.

This broker has no coordinators yet, so every key of a known type gets 15, coordinator not available, with
words that say what to do. The API is served all the same: librdkafka takes a broker without it for one that
cannot read LZ4, and sends such batches uncompressed without a word.
v4+: many keys in one request, an answer for each. Key types: 0 group, 1 transaction, 2 share group (v6);
others are 42.
"""

from __future__ import annotations

from typing import Final

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
_ADVICE: Final = {
    GROUP: "This broker has no group coordinator yet: consume with assign() instead of subscribe().",
    TRANSACTION: "This broker has no transaction coordinator yet.",
    SHARE: "This broker has no share coordinator yet.",
}


def handle(ctx: BrokerContext, request: Request[m.FindCoordinatorRequest]) -> m.FindCoordinatorResponse:
    """The refusal, once or for each key."""
    body, version = request.body, request.version
    error, message = _refusal(body.key_type, version)
    if version < BATCHED_FROM:
        told = message if version >= 1 else None
        return m.FindCoordinatorResponse(
            error_code=error, error_message=told, node_id=_NOWHERE, port=_NOWHERE
        )
    return m.FindCoordinatorResponse(
        coordinators=[
            m.FindCoordinatorResponse.Coordinator(
                key=key, error_code=error, error_message=message, node_id=_NOWHERE, port=_NOWHERE
            )
            for key in body.coordinator_keys
        ]
    )


def _refusal(key_type: int, version: int) -> tuple[ErrorCode, str]:
    if key_type not in _ADVICE or (key_type == SHARE and version < SHARE_FROM):
        return ErrorCode.INVALID_REQUEST, f"There is no coordinator for key type {key_type}."
    return ErrorCode.COORDINATOR_NOT_AVAILABLE, _ADVICE[key_type]

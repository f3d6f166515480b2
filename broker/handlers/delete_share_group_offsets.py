"""DeleteShareGroupOffsets (92), version 0: a share group without members forgets whole topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from broker.handlers.share_groups import share_requests
from coordinator.group.share.offsets import Refused
from protocol import messages as m
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.group.share.offsets import Deleting

_Topic = m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


def handle(ctx: BrokerContext, request: Request[m.DeleteShareGroupOffsetsRequest]) -> Any:
    """The answer, or a `Later` until the share state is gone."""
    body = request.body
    requests = share_requests(ctx)
    if requests is None:
        error = ErrorCode.UNSUPPORTED_VERSION
        return m.DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.message)
    later = Later()

    def done(plan: Refused | Deleting, errors: dict[bytes, ErrorCode]) -> None:
        if isinstance(plan, Refused):
            later.give(m.DeleteShareGroupOffsetsResponse(error_code=plan.error, error_message=plan.text))
            return
        response = m.DeleteShareGroupOffsetsResponse()
        for topic_id, error in errors.items():
            text = None if error is ErrorCode.NONE else error.message
            name = plan.names[topic_id]
            response.responses.append(
                _Topic(topic_name=name, topic_id=topic_id, error_code=error, error_message=text)
            )
        for name, (error, text) in plan.refused.items():
            response.responses.append(_Topic(topic_name=name, error_code=error, error_message=text))
        later.give(response)

    requests.delete_offsets(body.group_id, list(dict.fromkeys(t.topic_name for t in body.topics)), done)
    return later.now_or_later()

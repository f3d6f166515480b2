"""ShareAcknowledge (79), versions 1-2: what became of records that a member holds, without a fetch (KIP-932).

v2: locks may be renewed, and the answer tells for how long. Epoch -1 ends the session once it is answered.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from broker.handlers.share_requests import Acknowledgements, AckResult, leader_hints, refusal
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.share.share_partitions import Place
from replication.share.share_sessions import FINAL_EPOCH, SessionRefused

_Request = Request[m.ShareAcknowledgeRequest]
_Response = m.ShareAcknowledgeResponse


def handle(ctx: BrokerContext, request: _Request) -> Any:
    """The answer, now or later."""
    body = request.body
    error = refusal(ctx, body.group_id, body.member_id)
    if error is not ErrorCode.NONE:
        return _Response(error_code=error)
    assert body.group_id is not None
    assert body.member_id is not None
    try:
        ctx.share_data.parts.sessions.acknowledged(body.group_id, body.member_id, body.share_session_epoch)
    except SessionRefused as refused:
        return _Response(error_code=refused.error)
    later = Later()
    Acknowledgements(
        ctx,
        body.group_id,
        body.member_id,
        request.version,
        body.is_renew_ack,
        lambda results: _answer(ctx, request, results, later),
    ).apply(body.topics)
    return later.now_or_later()


def _answer(ctx: BrokerContext, request: _Request, results: dict[Place, AckResult], later: Later) -> None:
    body, parts = request.body, ctx.share_data.parts
    group_id, member = body.group_id or "", body.member_id or ""
    leaders, endpoints = leader_hints(
        ctx, {place: error for place, (error, _) in results.items()}, request.listener_name
    )
    response = _Response(
        acquisition_lock_timeout_ms=parts.partitions.limits(group_id).lock_duration_ms,
        node_endpoints=[
            _Response.NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
            for each in endpoints
        ],
    )
    topics: dict[bytes, list[_Response.PartitionData]] = {}
    for (topic_id, index), (error, message) in results.items():
        leader = leaders.get((topic_id, index), (0, 0))
        topics.setdefault(topic_id, []).append(
            _Response.PartitionData(
                partition_index=index,
                error_code=error,
                error_message=message,
                current_leader=_Response.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1]),
            )
        )
    response.responses = [
        _Response.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in topics.items()
    ]
    later.give(response)
    if body.share_session_epoch == FINAL_EPOCH:
        parts.release((group_id, member), parts.sessions.end(group_id, member))

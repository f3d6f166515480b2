"""ShareFetch (78), versions 1-2: acknowledge what a member held, and give it more (KIP-932).

v2: acquire mode (0 whole batches, 1 no record more than asked for), and requests that only renew locks.
A full table of sessions is told when the request's waiting time is over, so that clients do not ask at once
again. Acknowledgements and the fetch go on side by side; the answer waits for both. Epoch -1 reads nothing,
and ends the session once it is answered.
"""

from __future__ import annotations

from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from broker.handlers.share_answers import encode_share_fetch
from broker.handlers.share_requests import Acknowledgements, AckResult, leader_hints, refusal
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.share.share_fetch import ShareRow, ShareWish
from replication.share.share_partitions import Place
from replication.share.share_sessions import FINAL_EPOCH, SessionRefused, ShareContext

RENEW_FROM: Final = 2

_Request = Request[m.ShareFetchRequest]


def handle(ctx: BrokerContext, request: _Request) -> Any:
    """The answer, now or later."""
    body = request.body
    error = refusal(ctx, body.group_id, body.member_id)
    renews = request.version >= RENEW_FROM and body.is_renew_ack
    if renews and (body.max_bytes or body.min_bytes or body.max_records or body.max_wait_ms):
        error = error or ErrorCode.INVALID_REQUEST
    if error is not ErrorCode.NONE:
        return _refused(request, error)
    assert body.group_id is not None
    assert body.member_id is not None
    has_acks = any(each.acknowledgement_batches for topic in body.topics for each in topic.partitions)
    later = Later()
    try:
        context = ctx.share_data.parts.sessions.open(
            body.group_id,
            body.member_id,
            body.share_session_epoch,
            [(topic.topic_id, each.partition_index) for topic in body.topics for each in topic.partitions],
            [(topic.topic_id, index) for topic in body.forgotten_topics_data for index in topic.partitions],
            has_acks,
            request.connection,
        )
    except SessionRefused as refused:
        answer = _refused(request, refused.error)
        if refused.error is not ErrorCode.SHARE_SESSION_LIMIT_REACHED or body.max_wait_ms <= 0:
            return answer
        ctx.share_data.parts.later(body.max_wait_ms, lambda: later.give(answer))
        return later
    _Work(ctx, request, context, later).start(has_acks)
    return later.now_or_later()


def _refused(request: _Request, error: ErrorCode) -> Any:
    return encode_share_fetch(request.header.correlation_id, (), {}, error=error)


class _Work:
    """A request in its session: acknowledgements and rows are gathered, then it is answered."""

    __slots__ = ("_acks", "_context", "_ctx", "_group_id", "_later", "_member", "_request", "_rows")

    def __init__(self, ctx: BrokerContext, request: _Request, context: ShareContext, later: Later) -> None:
        self._ctx, self._request, self._context, self._later = ctx, request, context, later
        self._group_id = request.body.group_id or ""
        self._member = request.body.member_id or ""
        self._acks: dict[Place, AckResult] | None = None
        self._rows: list[ShareRow] | None = None

    def start(self, has_acks: bool) -> None:
        body, version = self._request.body, self._request.version
        if has_acks:
            Acknowledgements(
                self._ctx, self._group_id, self._member, version, body.is_renew_ack, self._acknowledged
            ).apply(body.topics)
        else:
            self._acknowledged({})
        if version >= RENEW_FROM and body.is_renew_ack:
            self._fetched([])
        else:
            self._fetch()

    def _fetch(self) -> None:
        body, parts = self._request.body, self._ctx.share_data.parts
        max_bytes = min(body.max_bytes, parts.fetch_max_bytes)
        wish = ShareWish(
            self._group_id,
            self._member,
            body.max_wait_ms,
            min(body.min_bytes, max_bytes),
            max_bytes,
            body.max_records,
            body.batch_size,
            body.share_acquire_mode,
            parts.settings.read_committed(self._group_id),
        )
        parts.fetch(wish, self._context.places, self._request.connection, self._fetched)

    def _acknowledged(self, results: dict[Place, AckResult]) -> None:
        self._acks = results
        self._answer()

    def _fetched(self, rows: list[ShareRow]) -> None:
        self._rows = rows
        self._answer()

    def _answer(self) -> None:
        if self._acks is None or self._rows is None:
            return
        request, parts = self._request, self._ctx.share_data.parts
        error, rows = self._context.respond(self._rows)
        leaders, endpoints = leader_hints(
            self._ctx, {row.place: row.error for row in rows}, request.listener_name
        )
        self._later.give(
            encode_share_fetch(
                request.header.correlation_id,
                rows,
                self._acks,
                error=error,
                lock_ms=parts.partitions.limits(self._group_id).lock_duration_ms,
                leaders=leaders,
                endpoints=endpoints,
            )
        )
        if request.body.share_session_epoch == FINAL_EPOCH:
            parts.release((self._group_id, self._member), parts.sessions.end(self._group_id, self._member))

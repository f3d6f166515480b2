"""ListTransactions (66), versions 0-2: the transactional ids that this broker looks after.

Filters: states by their names (those that are not known are told back), producer ids, v1+ how long the
transaction has lasted at least, v2+ a pattern (RE2) for the whole transactional id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.context import BrokerContext
from broker.handlers.request import Request
from coordinator.group.consumer.errors import Refused
from coordinator.group.consumer.expressions import compile_regex
from coordinator.result import CoordinatorError
from coordinator.transaction.shard import TransactionShard
from coordinator.transaction.state import Transaction, TxnState
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.pieces import AT_ONCE, Steps, split

_State = m.ListTransactionsResponse.TransactionState
_BY_TITLE = {state.title: state for state in TxnState}


def handle(ctx: BrokerContext, request: Request[m.ListTransactionsRequest]) -> Any:
    """The ids that pass all filters; 14 while any partition loads."""
    body = request.body
    matches = _pattern(body.transactional_id_pattern)
    if matches is None:
        return m.ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    try:
        shards = ctx.transactions.coordinator.manager().shards()
    except CoordinatorError as refused:
        return m.ListTransactionsResponse(error_code=refused.error)
    response = m.ListTransactionsResponse(
        unknown_state_filters=[name for name in body.state_filters if name not in _BY_TITLE]
    )
    states = {_BY_TITLE[name] for name in body.state_filters if name in _BY_TITLE}
    producer_ids = set(body.producer_id_filters)
    now_ms = ctx.env.clock.now_ms()

    def passes(transactional_id: str, txn: Transaction) -> bool:
        return (
            (not producer_ids or txn.producer_id in producer_ids)
            and (not body.state_filters or txn.state in states)
            and (body.duration_filter < 0 or now_ms - txn.start_ms > body.duration_filter)
            and matches(transactional_id)
        )

    def look(shard: TransactionShard, some: Sequence[str]) -> None:
        response.transaction_states += [
            _State(
                transactional_id=transactional_id,
                producer_id=txn.producer_id,
                transaction_state=txn.state.title,
            )
            for transactional_id in some
            if (txn := shard.get(transactional_id)) is not None and passes(transactional_id, txn)
        ]

    return ctx.pieces.many(_over_all(shards, look, response), sum(map(len, shards)))


def _over_all(
    shards: list[TransactionShard],
    look: Callable[[TransactionShard, Sequence[str]], None],
    response: m.ListTransactionsResponse,
) -> Steps[m.ListTransactionsResponse]:
    """Look at some ids at a time, of as many shards as they are in."""
    looked = 0
    for shard in shards:
        for some in split(shard.ids()):
            look(shard, some)
            looked += len(some)
            if looked >= AT_ONCE:
                looked = 0
                yield
    return response


def _pattern(pattern: str | None) -> Callable[[str], bool] | None:
    """Whether an id matches; None for a pattern that is none."""
    if not pattern:
        return lambda _: True
    try:
        compiled = compile_regex(pattern)
    except Refused:
        return None
    return lambda transactional_id: compiled.fullmatch(transactional_id) is not None

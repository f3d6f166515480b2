"""DescribeTransactions (65), version 0: what the coordinator knows of transactional ids."""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.paced import paced
from broker.handlers.repeats import bounded
from broker.handlers.request import Request
from broker.transaction.endings import by_topic
from coordinator.result import CoordinatorError
from protocol import messages as m

_State = m.DescribeTransactionsResponse.TransactionState
_Topic = m.DescribeTransactionsResponse.TopicData


def handle(ctx: BrokerContext, request: Request[m.DescribeTransactionsRequest]) -> Any:
    """One state for each id that is asked for; 105 for one that is not known."""
    response = m.DescribeTransactionsResponse()

    def tell(transactional_id: str) -> None:
        response.transaction_states.append(_describe(ctx, transactional_id))

    return paced(ctx.pieces, bounded(request.body.transactional_ids), tell, lambda: response)


def _describe(ctx: BrokerContext, transactional_id: str) -> _State:
    try:
        manager = ctx.transactions.coordinator.manager()
        txn = manager.describe(transactional_id)
        partitions = manager.partitions(transactional_id, txn)
    except CoordinatorError as refused:
        return _State(transactional_id=transactional_id, error_code=refused.error)
    return _State(
        transactional_id=transactional_id,
        transaction_state=txn.state.title,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_start_time_ms=txn.start_ms,
        producer_id=txn.producer_id,
        producer_epoch=txn.epoch,
        topics=[
            _Topic(topic=name, partitions=indexes) for name, indexes in by_topic(sorted(partitions)).items()
        ],
    )

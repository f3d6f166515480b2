"""DescribeTransactions: the coordinator's state of an id."""

from __future__ import annotations

from pathlib import Path

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.transaction_requests import FEW, ID, add, coordinate, init, state


def test_an_open_transaction(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, FEW) as broker:
        broker.create("b", 2)
        broker.create("a")
        coordinate(broker)
        producer = init(broker)
        before_ms = broker.ctx.env.clock.now_ms()
        assert add(broker, producer, ("b", 1), ("a", 0), ("b", 0)) == [0, 0, 0]
        found = state(broker)
        assert (found.transactional_id, found.transaction_state) == (ID, "Ongoing")
        assert (found.producer_id, found.producer_epoch) == (producer["producer_id"], 0)
        assert found.transaction_timeout_ms == 60_000
        assert found.transaction_start_time_ms >= before_ms - 1
        assert [(each.topic, each.partitions) for each in found.topics] == [("a", [0]), ("b", [0, 1])]


def test_ids_that_are_not_known_or_not_here(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, FEW) as broker:
        assert state(broker).error_code == E.NOT_COORDINATOR
        coordinate(broker)
        assert state(broker).error_code == E.TRANSACTIONAL_ID_NOT_FOUND
        request = m.DescribeTransactionsRequest(transactional_ids=["", "x"])
        codes = [each.error_code for each in broker.call(request, 0).transaction_states]
        assert codes == [E.INVALID_REQUEST, E.TRANSACTIONAL_ID_NOT_FOUND]

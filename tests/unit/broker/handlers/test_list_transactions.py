"""ListTransactions: filters and versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.runtime import State
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.transaction_requests import FEW, add, coordinate, init


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, FEW) as running:
        running.create("a")
        coordinate(running)
        yield running


def listed(broker: HandlerBroker, version: int = 2, **filters: Any) -> list[str]:
    answer = broker.call(m.ListTransactionsRequest(**filters), version)
    assert answer.error_code == 0
    return sorted(each.transactional_id for each in answer.transaction_states)


@pytest.mark.parametrize("version", range(3))
def test_all_of_them(broker: HandlerBroker, version: int) -> None:
    init(broker, "one"), init(broker, "two")
    assert listed(broker, version) == ["one", "two"]


def test_filters(broker: HandlerBroker) -> None:
    one, two = init(broker, "one"), init(broker, "two")
    assert add(broker, two, ("a", 0)) == [0]
    assert listed(broker, state_filters=["Ongoing"]) == ["two"]
    assert listed(broker, state_filters=["Empty", "Dead"]) == ["one"]
    assert listed(broker, producer_id_filters=[one["producer_id"]]) == ["one"]
    assert listed(broker, duration_filter=10**9) == ["one"]  # it has no start, which counts as long ago
    assert listed(broker, transactional_id_pattern="t.*") == ["two"]
    assert listed(broker, transactional_id_pattern="w") == []  # the whole id has to match
    assert listed(broker, transactional_id_pattern="") == ["one", "two"]


def test_very_many_are_looked_at_in_pieces(broker: HandlerBroker) -> None:
    names = sorted(f"t{number}" for number in range(510))
    for name in names:
        init(broker, name)
    assert listed(broker) == names
    assert listed(broker, transactional_id_pattern="t1[0-2]0") == ["t100", "t110", "t120"]


def test_states_that_are_none_are_told_back(broker: HandlerBroker) -> None:
    init(broker, "one")
    answer = broker.call(m.ListTransactionsRequest(state_filters=["Nonsense"]), 2)
    assert (answer.unknown_state_filters, answer.transaction_states) == (["Nonsense"], [])


def test_a_pattern_that_is_none(broker: HandlerBroker) -> None:
    answer = broker.call(m.ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert answer.error_code == E.INVALID_REGULAR_EXPRESSION


def test_while_a_partition_loads(broker: HandlerBroker) -> None:
    broker.ctx.transactions.coordinator.manager().runtime._partitions[1].state = State.LOADING
    assert broker.call(m.ListTransactionsRequest(), 0).error_code == E.COORDINATOR_LOAD_IN_PROGRESS

"""InitProducerId for idempotent producers."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.producer_ids import ProducerIds
from protocol import messages as m
from replication.controller.outcomes import NoBlock
from tests.support.handler_broker import HandlerBroker


def init(broker: HandlerBroker, version: int = 5, **fields: object) -> tuple[int, int, int]:
    request = m.InitProducerIdRequest(
        **{"transactional_id": None, "transaction_timeout_ms": 60_000, **fields}
    )
    answer = broker.call(request, version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("version", range(6))
def test_a_fresh_id_at_every_version(broker: HandlerBroker, version: int) -> None:
    first = init(broker, version)
    second = init(broker, version)
    assert (first[0], first[2], second[0], second[2]) == (0, 0, 0, 0)
    assert 0 <= first[1] < second[1]


def test_without_a_controller_that_gives_ids_the_client_is_to_ask_again(broker: HandlerBroker) -> None:
    async def nothing() -> tuple[int, int]:
        raise NoBlock("the controller is gone")

    broker.ctx.producer_ids = ProducerIds(nothing, broker.ctx.env.tasks.spawn)
    assert init(broker) == (14, -1, -1)


def test_no_id_comes_again_after_a_restart(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        given = [init(broker)[1] for _ in range(3)]
        tree = broker.tree
    with HandlerBroker(tmp_path, tree=tree) as again:
        assert init(again)[1] > max(given)


def test_an_id_without_its_epoch_is_refused(broker: HandlerBroker) -> None:
    assert init(broker, producer_id=5) == (42, -1, -1)
    assert init(broker, producer_epoch=5) == (42, -1, -1)
    assert init(broker, producer_id=5, producer_epoch=0)[0] == 0


def test_what_a_transactional_producer_may_not_ask(broker: HandlerBroker) -> None:
    assert init(broker, transactional_id="") == (42, -1, -1)
    assert init(broker, transactional_id="t", transaction_timeout_ms=0) == (50, -1, -1)
    assert init(broker, transactional_id="t", transaction_timeout_ms=900_001) == (50, -1, -1)
    assert init(broker, transactional_id="t") == (
        16,
        -1,
        -1,
    )  # there is no topic yet


def test_each_instance_of_a_transactional_producer_gets_the_next_epoch(broker: HandlerBroker) -> None:
    broker.call(m.FindCoordinatorRequest(key="t", key_type=1), 3)
    error, producer_id, epoch = init(broker, transactional_id="t")
    assert (error, epoch) == (0, 0)
    assert init(broker, transactional_id="t") == (0, producer_id, 1)
    assert init(broker, transactional_id="u")[1] > producer_id
    fenced = {"transactional_id": "t", "producer_id": producer_id, "producer_epoch": 0}
    assert init(broker, 4, **fenced) == (90, -1, -1)
    assert init(broker, 3, **fenced) == (47, -1, -1)


def test_no_transactional_id_without_a_producer_id(broker: HandlerBroker) -> None:
    async def nothing() -> tuple[int, int]:
        raise NoBlock("the controller is gone")

    broker.call(m.FindCoordinatorRequest(key="t", key_type=1), 3)
    broker.ctx.producer_ids = ProducerIds(nothing, broker.ctx.env.tasks.spawn)
    assert init(broker, transactional_id="t") == (14, -1, -1)

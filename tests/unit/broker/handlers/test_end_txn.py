"""EndTxn: the decision, its markers, and the epoch of the next transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from protocol.errors import ErrorCode as E
from protocol.records.batch import batches
from protocol.records.control import COMMIT, read_end_marker
from replication.controller.outcomes import NoBlock
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.transaction_requests import (
    FEW,
    ID,
    add,
    await_state,
    coordinate,
    end,
    init,
    state,
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, FEW) as running:
        running.create("a", 2)
        coordinate(running)
        yield running


def markers(broker: HandlerBroker, partition: int = 0) -> list[tuple[bool, int, int]]:
    """(committed, producer id, epoch) of each marker in the log."""
    replica = broker.ctx.replicas.get("a", partition)
    assert replica is not None
    end_offset = replica.log.end_offset
    data = replica.log.read(0, 1 << 20, end_offset).to_bytes() if end_offset else b""
    found = [read_end_marker(data, at) for at, _ in batches(data)]
    return [
        (each.type == COMMIT, each.producer_id, each.producer_epoch) for each in found if each is not None
    ]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("commit", [True, False])
def test_every_version_writes_a_marker_to_each_partition(
    broker: HandlerBroker, version: int, commit: bool
) -> None:
    producer = init(broker)
    assert add(broker, producer, ("a", 0), ("a", 1)) == [0, 0]
    assert end(broker, producer, commit, version).error_code == 0
    await_state(broker, "CompleteCommit" if commit else "CompleteAbort")
    for partition in range(2):
        assert markers(broker, partition) == [(commit, producer["producer_id"], 0)]
    assert state(broker).topics == []


def test_from_version_5_on_the_answer_names_the_next_epoch(broker: HandlerBroker) -> None:
    producer = init(broker)
    assert add(broker, producer, ("a", 0)) == [0]
    answer = end(broker, producer, True, 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, producer["producer_id"], 1)
    await_state(broker, "CompleteCommit")
    assert markers(broker) == [(True, producer["producer_id"], 1)]


def use_up(broker: HandlerBroker, producer: dict[str, Any]) -> None:
    """Give the producer the last epoch of its id."""
    manager = broker.ctx.transactions.coordinator.manager()
    shard = manager.runtime.shard(manager.runtime.partition_for(ID))
    spent = replace(manager.describe(ID), epoch=32766)
    shard._txns.put(ID, "", spent)
    shard._txns._journal.commit(1 << 60)
    producer["producer_epoch"] = 32766


def test_the_last_epoch_of_a_producer_id(broker: HandlerBroker) -> None:
    """Kafka hands out epochs up to 32,766; the end of that transaction brings a new producer id."""
    producer = init(broker)
    use_up(broker, producer)
    assert add(broker, producer, ("a", 0)) == [0]
    answer = end(broker, producer, True, 5)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id > producer["producer_id"]
    await_state(broker, "CompleteCommit")
    assert markers(broker) == [(True, producer["producer_id"], 32767)]
    assert end(broker, producer, True, 5).producer_id == answer.producer_id  # repeated


def test_without_a_controller_that_gives_ids_the_client_is_to_ask_again(broker: HandlerBroker) -> None:
    producer = init(broker)
    use_up(broker, producer)
    assert add(broker, producer, ("a", 0)) == [0]

    async def none() -> int:
        raise NoBlock("the controller is gone")

    broker.ctx.producer_ids.next_id = none  # type: ignore[method-assign]
    assert end(broker, producer, True, 5).error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    assert state(broker).transaction_state == "Ongoing"


def test_old_versions_do_not_know_fencing(broker: HandlerBroker) -> None:
    producer = init(broker)
    init(broker)
    assert end(broker, producer, True, 2).error_code == E.PRODUCER_FENCED
    assert end(broker, producer, True, 1).error_code == E.INVALID_PRODUCER_EPOCH

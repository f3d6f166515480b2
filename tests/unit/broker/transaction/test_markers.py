"""Markers on partitions of this broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.transaction.markers import Marker
from protocol import messages as m
from protocol.errors import ErrorCode as E
from protocol.records.control import ABORT, COMMIT, read_end_marker
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.transaction_requests import FEW

Cell = tuple[str, int]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, FEW) as running:
        running.create("a", 2)
        yield running


def write(broker: HandlerBroker, marker: Marker, *cells: Cell) -> dict[Cell, E]:
    async def written() -> dict[Cell, E]:
        done = asyncio.get_running_loop().create_future()
        broker.ctx.transactions.markers.write(marker, cells, done.set_result)
        async with asyncio.timeout(60):
            found: dict[Cell, E] = await done
            return found

    return broker.runner.run(written())


@pytest.mark.parametrize("commit", [True, False])
def test_each_partition_gets_one(broker: HandlerBroker, commit: bool) -> None:
    marker = Marker(7, 3, 5, commit, 0)
    assert write(broker, marker, ("a", 0), ("a", 1)) == {("a", 0): E.NONE, ("a", 1): E.NONE}
    for index in range(2):
        replica = broker.ctx.replicas.get("a", index)
        assert replica is not None
        assert replica.log.high_watermark == 1
        found = read_end_marker(replica.log.read(0, 1 << 20, 1).to_bytes())
        assert found is not None
        assert (found.type, found.producer_id, found.producer_epoch) == (COMMIT if commit else ABORT, 7, 3)
        assert found.coordinator_epoch == 5


def test_what_is_not_here_has_its_error(broker: HandlerBroker) -> None:
    unknown = E.UNKNOWN_TOPIC_OR_PARTITION
    assert write(broker, Marker(7, 3, 5, True, 0), ("b", 0)) == {("b", 0): unknown}
    assert write(broker, Marker(7, 3, 5, True, 0), ("b", 0), ("a", 0)) == {
        ("b", 0): unknown,
        ("a", 0): E.NONE,
    }
    assert write(broker, Marker(7, 3, 5, True, 0)) == {}


def test_offsets_become_visible_before_the_marker_is_acknowledged(broker: HandlerBroker) -> None:
    broker.call(m.FindCoordinatorRequest(key="g"), 3)
    runtime = broker.ctx.groups.manager().runtime
    cells = [("__consumer_offsets", index) for index in range(2)]
    seen: list[tuple[int, bool]] = []
    for index in range(2):
        shard = runtime.shard(index)
        shard.replay_end_marker = lambda producer_id, commit: seen.append((producer_id, commit))  # type: ignore[method-assign]
    assert write(broker, Marker(7, 3, 5, True, 0), *cells) == dict.fromkeys(cells, E.NONE)
    assert seen == [(7, True), (7, True)]
    runtime.unload(1)
    assert write(broker, Marker(7, 3, 5, True, 0), *cells)[cells[1]] is E.NOT_LEADER_OR_FOLLOWER


def test_a_transaction_with_an_epoch_of_its_own_is_not_ended_twice(broker: HandlerBroker) -> None:
    """With version 2 a marker has a new epoch; one with that of the last is the same marker again."""
    cell = ("a", 0)
    assert write(broker, Marker(7, 3, 5, True, 2), cell) == {cell: E.NONE}
    assert write(broker, Marker(7, 3, 5, True, 2), cell)[cell] in (E.NONE, E.INVALID_PRODUCER_EPOCH)
    assert write(broker, Marker(7, 2, 5, True, 2), cell) == {cell: E.INVALID_PRODUCER_EPOCH}

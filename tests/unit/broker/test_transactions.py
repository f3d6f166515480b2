"""The life of the transaction coordinator: its topic, restarts, what runs by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from broker.transactions import TOPIC
from protocol.errors import ErrorCode as E
from protocol.records.batch import batches, records
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.features import FeatureImage
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


def wait_for(broker: HandlerBroker, condition: Callable[[], bool]) -> None:
    """Let the broker's loop run until then."""
    for _ in range(4000):
        if condition():
            return
        broker.runner.run(asyncio.sleep(0.005))
    raise AssertionError("it did not happen")


def test_the_topic_is_made_with_kafkas_settings(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, {**FEW, "transaction.state.log.segment.bytes": "2000000"}) as broker:
        coordinate(broker)
        image = broker.ctx.image
        assert len(image.topics[TOPIC].partitions) == 2
        configs = image.configs[ConfigResource(ConfigType.TOPIC, TOPIC)]
        assert dict(configs) == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": "2000000",
            "min.insync.replicas": "1",
            "unclean.leader.election.enable": "false",
        }


def test_a_restart_keeps_every_id_and_carries_out_what_was_decided(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, FEW) as broker:
        broker.create("a")
        coordinate(broker)
        producer = init(broker)
        assert add(broker, producer, ("a", 0)) == [0]
        coordinator = broker.ctx.transactions.coordinator
        coordinator.manager()._endings.decided = lambda *_: None  # the broker dies before any marker
        assert end(broker, producer, True).error_code == 0
        assert state(broker).transaction_state == "PrepareCommit"
    with HandlerBroker(tmp_path, FEW, tree=broker.tree) as again:
        await_state(again, "CompleteCommit")
        replica = again.ctx.replicas.get("a", 0)
        assert replica is not None
        assert replica.log.end_offset == 1
        assert end(again, producer, True).error_code == 0


def test_transactions_that_take_too_long_are_aborted(tmp_path: Path) -> None:
    static = {**FEW, "transaction.abort.timed.out.transaction.cleanup.interval.ms": "5"}
    with HandlerBroker(tmp_path, static) as broker:
        broker.create("a")
        coordinate(broker)
        producer = init(broker)
        manager = broker.ctx.transactions.coordinator.manager()
        manager.init_producer(ID, None, 1, None, lambda *_: None)  # of one millisecond
        wait_for(broker, lambda: manager.describe(ID).epoch == 1)
        producer["producer_epoch"] = 1
        assert add(broker, producer, ("a", 0)) == [0]

        wait_for(broker, lambda: manager.describe(ID).state.title == "CompleteAbort")
        assert add(broker, producer, ("a", 0)) == [E.PRODUCER_FENCED]


def test_ids_that_nobody_uses_are_forgotten(tmp_path: Path) -> None:
    static = {
        **FEW,
        "transaction.remove.expired.transaction.cleanup.interval.ms": "5",
        "transactional.id.expiration.ms": "1",
    }
    with HandlerBroker(tmp_path, static) as broker:
        coordinate(broker)
        init(broker)

        wait_for(broker, lambda: not any(map(len, broker.ctx.transactions.coordinator.manager().shards())))
        assert state(broker).error_code == E.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize(("level", "version"), [(0, b"\0\0"), (1, b"\0\1"), (2, b"\0\1")])
def test_the_form_of_records_follows_the_feature(tmp_path: Path, level: int, version: bytes) -> None:
    with HandlerBroker(tmp_path, {**FEW, "transaction.state.log.num.partitions": "1"}) as broker:
        features = FeatureImage({"transaction.version": level}, 1)
        broker.ctx.holder.publish(replace(broker.ctx.image, features=features))
        coordinate(broker)
        init(broker)
        replica = broker.ctx.replicas.get(TOPIC, 0)
        assert replica is not None
        data = replica.log.read(0, 1 << 20, replica.log.end_offset).to_bytes()
        values = [record.value for at, _ in batches(data) for record in records(data, at)]
        assert [value[:2] for value in values if value is not None] == [version]

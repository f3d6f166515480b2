"""Consumers of each client library in groups: every record once, commits that hold over a restart.

Each test has a broker of its own, with two partitions and no delay before the first rebalance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient

PARTITIONS = 2
SETTINGS = {"num.partitions": str(PARTITIONS), "group.initial.rebalance.delay.ms": "0"}
TOPIC = "orders"

Consume = Callable[[str, str, int], list[bytes]]
"""Subscribe to TOPIC in a group, read this many records, commit, leave: (servers, group, count) to values."""


def with_kafka_python(servers: str, group: str, count: int) -> list[bytes]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=count,
    )
    try:
        seen: list[bytes] = []
        while len(seen) < count:
            for records in consumer.poll(timeout_ms=1000, max_records=count - len(seen)).values():
                seen += [record.value for record in records]
        consumer.commit()
        return seen
    finally:
        consumer.close()


def with_aiokafka(servers: str, group: str, count: int) -> list[bytes]:
    from aiokafka import AIOKafkaConsumer

    async def run() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=servers,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        try:
            seen: list[bytes] = []
            while len(seen) < count:
                found = await consumer.getmany(timeout_ms=1000, max_records=count - len(seen))
                seen += [record.value for records in found.values() for record in records]
            await consumer.commit()
            return seen
        finally:
            await consumer.stop()

    return asyncio.run(run())


def with_confluent_kafka(servers: str, group: str, count: int) -> list[bytes]:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([TOPIC])
    try:
        seen: list[bytes] = []
        while len(seen) < count:
            for message in consumer.consume(count - len(seen), timeout=1.0):
                assert message.error() is None, message.error()
                seen.append(message.value())
        consumer.commit(asynchronous=False)
        return seen
    finally:
        consumer.close()


LIBRARIES: dict[str, Consume] = {
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
    "confluent-kafka": with_confluent_kafka,
}


@pytest.fixture
def broker() -> Iterator[OttlaProcess]:
    with OttlaProcess(SETTINGS) as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            wire.create_topic(TOPIC, PARTITIONS)
        yield broker


def produce(broker: OttlaProcess, first: int, last: int) -> set[bytes]:
    """One record for each number, dealt out over the partitions."""
    values = [b"%d" % number for number in range(first, last)]
    with WireClient(broker.bootstrap_servers) as wire:
        for partition in range(PARTITIONS):
            wire.produce_values(TOPIC, *values[partition::PARTITIONS], partition=partition)
    return set(values)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("restart", ["clean", "kill"])
def test_a_group_goes_on_where_it_committed(broker: OttlaProcess, library: str, restart: str) -> None:
    consume, servers = LIBRARIES[library], broker.bootstrap_servers
    everything = produce(broker, 0, 40)
    first = consume(servers, "g", 15)
    second = consume(servers, "g", 10)
    if restart == "clean":
        broker.stop()
    else:
        broker.kill()
    broker.start()
    third = consume(servers, "g", 15)
    seen = first + second + third
    assert len(seen) == len(set(seen))
    assert set(seen) == everything
    assert set(consume(servers, "another", 40)) == everything


def test_libraries_take_turns_in_one_group(broker: OttlaProcess) -> None:
    everything = produce(broker, 0, 30)
    seen = [
        value for consume in LIBRARIES.values() for value in consume(broker.bootstrap_servers, "shared", 10)
    ]
    assert len(seen) == len(set(seen))
    assert set(seen) == everything

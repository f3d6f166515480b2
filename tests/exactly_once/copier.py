"""Copies one topic to another in transactions, with the client library of one's choice, until it is killed.

    python -m tests.exactly_once.copier {confluent|aiokafka|kafka-python} SERVERS SOURCE TARGET ID

Offsets are committed in the transactions, in the group that is called as the transactional id. It begins anew
by ending: whatever fails ends the process with exit code 3, and who started it starts it again. A round that
does not come to its end ends it, too, with exit code 1 and the stack of each thread. Nothing is committed
before every record of the transaction is acknowledged, and nothing that was read under an earlier assignment.
"""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import sys
import traceback
from collections.abc import Callable

from tests.support.waiting import wait_until

FAILED = 3
AT_ONCE = 500
WAIT_S = 0.2
TIMEOUT_S = 60
ROUND_S = 45  # a client that hangs is ended; one of a slow machine is not
PARTITIONS = 3


def begin_round() -> None:
    """The process ends unless the next round begins in time.

    kafka-python waits for ever for the answer of a coordinator whose connection broke at the wrong moment.
    """
    faulthandler.dump_traceback_later(ROUND_S, exit=True)


def give_up(*_: object) -> None:
    """What was read under an assignment may be read by others, or again, once it is revoked."""
    raise RuntimeError("the assignment is revoked")


def copy_with_confluent(servers: str, source: str, target: str, name: str) -> None:
    from confluent_kafka import Consumer, Producer

    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": name,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "log_level": 0,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": name,
            "linger.ms": 1,
            "log_level": 0,
            # with rebootstrap librdkafka 2.x gives up its only broker and spins for ever, as its coordinator
            # still holds it
            "metadata.recovery.strategy": "none",
        }
    )
    producer.init_transactions(TIMEOUT_S)
    consumer.subscribe([source], on_revoke=give_up, on_lost=give_up)
    while True:
        begin_round()
        messages = [each for each in consumer.consume(AT_ONCE, WAIT_S) if not each.error()]
        if not messages:
            continue
        producer.begin_transaction()
        for each in messages:
            producer.produce(target, each.value(), each.key(), each.partition())
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), TIMEOUT_S)
        producer.commit_transaction(TIMEOUT_S)


def copy_with_aiokafka(servers: str, source: str, target: str, name: str) -> None:
    asyncio.run(_copy_with_aiokafka(servers, source, target, name))


async def _copy_with_aiokafka(servers: str, source: str, target: str, name: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id=name,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=name)
    await producer.start()
    await consumer.start()
    # Not by subscription: aiokafka rebalances amid a transaction, and reads again what that one has copied.
    consumer.assign([TopicPartition(source, index) for index in range(PARTITIONS)])
    while True:
        begin_round()
        batches = await consumer.getmany(timeout_ms=int(WAIT_S * 1000), max_records=AT_ONCE)
        if not batches:
            continue
        async with producer.transaction():
            sent = [
                await producer.send(target, each.value, each.key, partition.partition)
                for partition, messages in batches.items()
                for each in messages
            ]
            await asyncio.gather(*sent)
            offsets = {partition: messages[-1].offset + 1 for partition, messages in batches.items()}
            await producer.send_offsets_to_transaction(offsets, name)


def copy_with_kafka_python(servers: str, source: str, target: str, name: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata

    consumer = KafkaConsumer(
        source,
        bootstrap_servers=servers,
        group_id=name,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=6000,
    )
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id=name, acks="all")
    producer.init_transactions()
    while True:
        begin_round()
        batches = consumer.poll(timeout_ms=int(WAIT_S * 1000), max_records=AT_ONCE)
        if not batches:
            continue
        producer.begin_transaction()
        sent = [
            producer.send(target, each.value, each.key, partition=partition.partition)
            for partition, messages in batches.items()
            for each in messages
        ]
        # Where a batch fails under a commit, kafka-python takes a new epoch and tells that it has committed.
        wait_until(
            lambda sent=sent: any(each.failed() for each in sent) or all(each.succeeded() for each in sent),
            "the acknowledgement of a transaction",
        )
        for each in sent:
            each.get()
        offsets = {
            partition: OffsetAndMetadata(messages[-1].offset + 1, "", -1)
            for partition, messages in batches.items()
        }
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()


CLIENTS: dict[str, Callable[[str, str, str, str], None]] = {
    "confluent": copy_with_confluent,
    "aiokafka": copy_with_aiokafka,
    "kafka-python": copy_with_kafka_python,
}


def main(client: str, servers: str, source: str, target: str, name: str) -> None:
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("kafka.net").setLevel(logging.CRITICAL)  # tells of each try to connect
    logging.getLogger("kafka.cluster").setLevel(logging.CRITICAL)
    logging.warning("a copier with %s begins", client)
    begin_round()
    try:
        CLIENTS[client](servers, source, target, name)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(FAILED)  # without the goodbyes of clients that wait for brokers


if __name__ == "__main__":
    main(*sys.argv[1:])

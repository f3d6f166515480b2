"""One function a client library: writes rows to explicit partitions and returns when all are acknowledged.

Row i goes to partition i % partitions, so every reader knows the order it must see. All writers ask for
acks=all and use the library's defaults otherwise (idempotence where the library turns it on).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from tests.clients.datasets import Row

Writer = Callable[[str, str, Sequence[Row], str, int], None]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def write_with_kafka_python(
    bootstrap: str, topic: str, rows: Sequence[Row], codec: str, partitions: int
) -> None:
    from kafka import KafkaProducer

    compression = None if codec == "none" else codec
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", compression_type=compression, linger_ms=20, batch_size=65536
    )
    try:
        pending = [
            producer.send(
                topic,
                key=row.key,
                value=row.value,
                headers=list(row.headers),
                partition=i % partitions,
                timestamp_ms=row.timestamp_ms,
            )
            for i, row in enumerate(rows)
        ]
        producer.flush(60)
        for future in pending:
            future.get(timeout=60)
    finally:
        producer.close(timeout=60)


def write_with_aiokafka(bootstrap: str, topic: str, rows: Sequence[Row], codec: str, partitions: int) -> None:
    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks="all",
            compression_type=None if codec == "none" else codec,
            linger_ms=20,
            max_batch_size=65536,
        )
        await producer.start()
        try:
            pending = [
                await producer.send(
                    topic,
                    key=row.key,
                    value=row.value,
                    headers=list(row.headers),
                    partition=i % partitions,
                    timestamp_ms=row.timestamp_ms,
                )
                for i, row in enumerate(rows)
            ]
            await producer.flush()
            await asyncio.gather(*pending)
        finally:
            await producer.stop()

    asyncio.run(run())


def write_with_confluent(
    bootstrap: str, topic: str, rows: Sequence[Row], codec: str, partitions: int
) -> None:
    from confluent_kafka import Producer

    failures: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "compression.type": codec,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
        },
        logger=logging.getLogger("librdkafka"),
    )

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for i, row in enumerate(rows):
        producer.produce(
            topic,
            key=row.key,
            value=row.value,
            headers=list(row.headers),
            partition=i % partitions,
            timestamp=row.timestamp_ms,
            on_delivery=delivered,
        )
        producer.poll(0)
    assert producer.flush(60) == 0
    assert failures == []


WRITERS: dict[str, Writer] = {
    "kafka-python": write_with_kafka_python,
    "aiokafka": write_with_aiokafka,
    "confluent": write_with_confluent,
}

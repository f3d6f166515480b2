"""One function a client: reads a topic from its start to its end, without a group, and returns what it saw.

`Seen` is a list for each partition of (offset, Row). A reader asks for the end offsets first and stops when
every partition has reached its own, so it needs no time-out to know that it is finished.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable

from tests.clients.datasets import Row

Seen = dict[int, list[tuple[int, Row]]]
Reader = Callable[[str, str, int], Seen]


def read_with_kafka_python(bootstrap: str, topic: str, partitions: int) -> Seen:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, max_poll_records=5000
    )
    try:
        places = [TopicPartition(topic, p) for p in range(partitions)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        left = {place.partition: end for place, end in consumer.end_offsets(places).items() if end}
        seen: Seen = {p: [] for p in range(partitions)}
        while left:
            for records in consumer.poll(timeout_ms=5000).values():
                for r in records:
                    headers = tuple((name, bytes(value)) for name, value in r.headers)
                    seen[r.partition].append((r.offset, Row(r.key, r.value, headers, r.timestamp)))
                    if r.offset + 1 >= left.get(r.partition, 0):
                        left.pop(r.partition, None)
        return seen
    finally:
        consumer.close()


def read_with_aiokafka(bootstrap: str, topic: str, partitions: int) -> Seen:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> Seen:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            places = [TopicPartition(topic, p) for p in range(partitions)]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            left = {
                place.partition: end for place, end in (await consumer.end_offsets(places)).items() if end
            }
            seen: Seen = {p: [] for p in range(partitions)}
            while left:
                for records in (await consumer.getmany(timeout_ms=5000)).values():
                    for r in records:
                        row = Row(r.key, r.value, tuple(r.headers), r.timestamp)
                        seen[r.partition].append((r.offset, row))
                        if r.offset + 1 >= left.get(r.partition, 0):
                            left.pop(r.partition, None)
            return seen
        finally:
            await consumer.stop()

    return asyncio.run(run())


def read_with_confluent(bootstrap: str, topic: str, partitions: int) -> Seen:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False},
        logger=logging.getLogger("librdkafka"),
    )
    try:
        left = {}
        for p in range(partitions):
            _, end = consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)
            if end:
                left[p] = end
        consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
        seen: Seen = {p: [] for p in range(partitions)}
        while left:
            for message in consumer.consume(num_messages=10_000, timeout=1):
                if message.error():
                    raise KafkaException(message.error())
                headers = tuple((name, value) for name, value in message.headers() or ())
                row = Row(message.key(), message.value(), headers, message.timestamp()[1])
                seen[message.partition()].append((message.offset(), row))
                if message.offset() + 1 >= left.get(message.partition(), 0):
                    left.pop(message.partition(), None)
        return seen
    finally:
        consumer.close()


def read_with_kcat(bootstrap: str, topic: str, partitions: int) -> Seen:
    # Lengths before the bytes: keys and values may hold any character.
    layout = "%p %o %T %K %S %h\n%k%s"
    command = ["kcat", "-b", bootstrap, "-C", "-q", "-e", "-t", topic, "-o", "beginning", "-f", layout]
    out = subprocess.run(command, check=True, capture_output=True, timeout=120).stdout
    seen: Seen = {p: [] for p in range(partitions)}
    at = 0
    while at < len(out):
        line_end = out.index(b"\n", at)
        fields = out[at:line_end].split(b" ", 5)
        partition, offset, timestamp, key_size, value_size = map(int, fields[:5])
        at = line_end + 1
        key = None if key_size < 0 else out[at : at + key_size]
        at += max(key_size, 0)
        value = None if value_size < 0 else out[at : at + value_size]
        at += max(value_size, 0)
        pairs = [pair.partition(b"=") for pair in fields[5].split(b",")] if fields[5] else []
        headers = tuple((name.decode(), content) for name, _, content in pairs)
        seen[partition].append((offset, Row(key, value, headers, timestamp)))
    for rows in seen.values():
        rows.sort(key=lambda pair: pair[0])
    return seen


READERS: dict[str, Reader] = {
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
    "confluent": read_with_confluent,
    "kcat": read_with_kcat,
}

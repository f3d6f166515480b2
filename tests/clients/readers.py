"""One function a client: reads topics from start to end, without a group, and returns what it saw.

`Seen` is for each topic a list for each partition of (offset, Row). A reader asks for the end offsets first
and stops when every partition has reached its own, so it needs no time-out to know that it is finished.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable, Iterable, Mapping

from tests.clients.datasets import Row

Seen = dict[str, list[list[tuple[int, Row]]]]
Reader = Callable[[str, list[str], int], Seen]


class Tally:
    """Collects records until every partition has reached its end offset."""

    def __init__(self, topics: list[str], partitions: int, ends: Mapping[tuple[str, int], int]) -> None:
        self.seen: Seen = {topic: [[] for _ in range(partitions)] for topic in topics}
        self.left = {place: end for place, end in ends.items() if end}

    def add(self, topic: str, partition: int, offset: int, row: Row) -> None:
        self.seen[topic][partition].append((offset, row))
        if offset + 1 >= self.left.get((topic, partition), 0):
            self.left.pop((topic, partition), None)


def places(topics: list[str], partitions: int) -> Iterable[tuple[str, int]]:
    return [(topic, partition) for topic in topics for partition in range(partitions)]


def read_with_kafka_python(bootstrap: str, topics: list[str], partitions: int) -> Seen:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, max_poll_records=5000
    )
    try:
        assigned = [TopicPartition(*place) for place in places(topics, partitions)]
        consumer.assign(assigned)
        consumer.seek_to_beginning(*assigned)
        ends = consumer.end_offsets(assigned)
        tally = Tally(topics, partitions, {(tp.topic, tp.partition): end for tp, end in ends.items()})
        while tally.left:
            for records in consumer.poll(timeout_ms=5000).values():
                for r in records:
                    headers = tuple((name, bytes(value)) for name, value in r.headers)
                    tally.add(r.topic, r.partition, r.offset, Row(r.key, r.value, headers, r.timestamp))
        return tally.seen
    finally:
        consumer.close()


def read_with_aiokafka(bootstrap: str, topics: list[str], partitions: int) -> Seen:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> Seen:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        try:
            assigned = [TopicPartition(*place) for place in places(topics, partitions)]
            consumer.assign(assigned)
            await consumer.seek_to_beginning(*assigned)
            ends = await consumer.end_offsets(assigned)
            tally = Tally(topics, partitions, {(tp.topic, tp.partition): end for tp, end in ends.items()})
            while tally.left:
                for records in (await consumer.getmany(timeout_ms=5000)).values():
                    for r in records:
                        row = Row(r.key, r.value, tuple(r.headers), r.timestamp)
                        tally.add(r.topic, r.partition, r.offset, row)
            return tally.seen
        finally:
            await consumer.stop()

    return asyncio.run(run())


def read_with_confluent(bootstrap: str, topics: list[str], partitions: int) -> Seen:
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False},
        logger=logging.getLogger("librdkafka"),
    )
    try:
        ends = {}
        for place in places(topics, partitions):
            _, ends[place] = consumer.get_watermark_offsets(TopicPartition(*place), timeout=60)
        tally = Tally(topics, partitions, ends)
        consumer.assign([TopicPartition(*place, 0) for place in places(topics, partitions)])
        while tally.left:
            for message in consumer.consume(num_messages=10_000, timeout=1):
                if message.error():
                    raise KafkaException(message.error())
                headers = tuple((name, value) for name, value in message.headers() or ())
                row = Row(message.key(), message.value(), headers, message.timestamp()[1])
                tally.add(message.topic(), message.partition(), message.offset(), row)
        return tally.seen
    finally:
        consumer.close()


def read_with_kcat(bootstrap: str, topics: list[str], partitions: int) -> Seen:
    # Lengths before the bytes: keys and values may hold any character.
    layout = "%p %o %T %K %S %h\n%k%s"
    started = {}
    for topic in topics:
        command = ["kcat", "-b", bootstrap, "-C", "-q", "-e", "-t", topic, "-o", "beginning", "-f", layout]
        started[topic] = subprocess.Popen(command, stdout=subprocess.PIPE)
    seen: Seen = {}
    for topic, process in started.items():
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        seen[topic] = kcat_rows(out, partitions)
    return seen


def kcat_rows(out: bytes, partitions: int) -> list[list[tuple[int, Row]]]:
    """What kcat printed, by partition and offset."""
    rows: list[list[tuple[int, Row]]] = [[] for _ in range(partitions)]
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
        rows[partition].append((offset, Row(key, value, headers, timestamp)))
    for found in rows:
        found.sort(key=lambda pair: pair[0])
    return rows


READERS: dict[str, Reader] = {
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
    "confluent": read_with_confluent,
    "kcat": read_with_kcat,
}

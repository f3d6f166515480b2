"""librdkafka (confluent-kafka) as users run it: acks=all, one partition, client defaults otherwise."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

from bench import job
from bench.brokers import Broker
from bench.offsets import end_offsets
from bench.rounds import Plan, Row, Sample, cpu_of, measure

RECORDS = {1024: 400_000, 100: 1_500_000}  # a round
SECTION = "librdkafka, one partition, acks=all"
CONSUME_SECONDS = 120.0


def produce(host: str, port: int, topic: str, record_bytes: int, records: int) -> dict[str, float]:
    """Produce and wait for every acknowledgement; runs in a process of its own."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"{host}:{port}", "queue.buffering.max.messages": 1_000_000})
    value = (b"0123456789abcdef" * (record_bytes // 16 + 1))[:record_bytes]
    before = sum(end_offsets(host, port, topic, 1))
    send, poll = producer.produce, producer.poll
    start = time.perf_counter()
    for i in range(records):
        while True:
            try:
                send(topic, value, partition=0)
                break
            except BufferError:
                poll(0.05)
        if not i % 10_000:
            poll(0)
    left = producer.flush(120)
    took = time.perf_counter() - start
    stored = sum(end_offsets(host, port, topic, 1)) - before
    if left or stored < records:
        raise RuntimeError(f"{stored} of {records} records are stored, {left} were given up")
    return {"bytes": records * record_bytes, "seconds": took, "client_cpu": time.process_time()}


def consume(host: str, port: int, topic: str, record_bytes: int, records: int) -> dict[str, float]:
    """Read so many records from the beginning; runs in a process of its own."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": f"{host}:{port}", "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    got = 0
    start = time.perf_counter()
    first = 0.0
    while got < records:
        for message in consumer.consume(10_000, 1.0):
            if message.error():
                raise RuntimeError(str(message.error()))
            got += 1
        first = first or (time.perf_counter() if got else 0.0)
        if time.perf_counter() - start > CONSUME_SECONDS:
            raise RuntimeError(f"{got} of {records} records came in {CONSUME_SECONDS:g} s")
    took = time.perf_counter() - start
    consumer.close()
    return {"bytes": got * record_bytes, "seconds": took, "client_cpu": time.process_time()}


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """For each record size: produce, then consume what was produced."""
    for record_bytes, most in RECORDS.items():
        records, topic = int(most * plan.scale), f"bench-rdkafka-{record_bytes}"
        for broker in brokers:
            broker.create_topic(topic, 1)
            run_once(broker, "produce", topic, record_bytes, records)
        for kind in ("produce", "consume"):
            runners = {b.name: partial(run_once, b, kind, topic, record_bytes, records) for b in brokers}
            label = f"{kind} {record_bytes:,} B records"
            yield measure(Row(SECTION, label, "MB/s", "CPU s/GB"), runners, plan.rounds)
        for broker in brokers:
            broker.delete_topic(topic)


def run_once(broker: Broker, kind: str, topic: str, record_bytes: int, records: int) -> Sample:
    before = broker.cpu_seconds()
    done = job.run(
        f"bench.librdkafka:{kind}",
        host=broker.host,
        port=broker.port,
        topic=topic,
        record_bytes=record_bytes,
        records=records,
    )
    cpu = cpu_of(before, broker.cpu_seconds(), done["bytes"])
    return Sample(done["bytes"] / done["seconds"] / 1e6, cpu and cpu * 1e9)

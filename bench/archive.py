"""The `archive` job on a large topic: its rate, its time, and the broker's share of the CPU time.

The topic is filled once on each side; a round is one life of a Spark that archives all of it, a fifth at a
time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench import job
from bench.brokers import Broker
from bench.rounds import Plan, Row, Sample, measure
from bench.spark import PARTITIONS, share

RECORDS = 10_000_000
RECORD_BYTES = 100
BATCHES = 5
SECTION = "Spark's archive job on two cores"
TOPIC = "bench-archive"
FLUSH_SECONDS = 120.0


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """One run gives the time, the rate and the share of a round."""
    records = int(RECORDS * plan.scale)
    lives: dict[str, list[dict[str, float]]] = {broker.name: [] for broker in brokers}

    def live(broker: Broker) -> Sample:
        lives[broker.name].append(archive_once(broker, records))
        return Sample(lives[broker.name][-1]["seconds"])

    for broker in brokers:
        broker.create_topic(TOPIC, PARTITIONS)
        job.run("bench.archive:fill", host=broker.host, port=broker.port, topic=TOPIC, records=records)
    runners = {broker.name: (lambda b=broker: live(b)) for broker in brokers}
    measured = measure(Row(SECTION, "", "s"), runners, plan.rounds)
    for broker in brokers:
        broker.delete_topic(TOPIC)
    yield from table(records, lives, measured.notes)


def table(records: int, lives: dict[str, list[dict[str, float]]], notes: list[str]) -> Iterator[Row]:
    """The three rows of what was measured."""
    time = Row(SECTION, f"{records:,} x {RECORD_BYTES} B", "s", lower_is_better=True, digits=1, notes=notes)
    rate = Row(SECTION, "rate", "records/s")
    part = Row(SECTION, "the broker's share of CPU", "%", lower_is_better=True, digits=1)
    for name, got in lives.items():
        for figures in got:
            time.samples.setdefault(name, []).append(Sample(figures["seconds"]))
            rate.samples.setdefault(name, []).append(Sample(records / figures["seconds"]))
            found = share(figures)
            if found is not None:
                part.samples.setdefault(name, []).append(Sample(found * 100))
    yield from (time, rate, part)


def archive_once(broker: Broker, records: int) -> dict[str, float]:
    """Seconds, and CPU seconds of the broker and of Spark."""
    figures: dict[str, float] = job.run(
        "bench.spark_work:archive",
        bootstrap=broker.bootstrap,
        broker_pid=broker.pid,
        topic=TOPIC,
        records=records,
        batches=BATCHES,
    )
    return figures


def fill(host: str, port: int, topic: str, records: int) -> dict[str, float]:
    """Produce to all partitions in turn and wait for every acknowledgement; runs in a process of its own."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"{host}:{port}", "queue.buffering.max.messages": 1_000_000})
    send, poll = producer.produce, producer.poll
    for i in range(records):
        value = b"%0*d" % (RECORD_BYTES, i)
        while True:
            try:
                send(topic, value, partition=i % PARTITIONS)
                break
            except BufferError:
                poll(0.05)
        if not i % 10_000:
            poll(0)
    left = producer.flush(FLUSH_SECONDS)
    if left:
        raise RuntimeError(f"{left} of {records} records were not acknowledged")
    return {"records": records}

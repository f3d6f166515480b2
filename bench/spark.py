"""Spark through its own Kafka connector: write, read and count distinct, copy as a stream.

One life of a Spark gives the three figures of a round, a life on each broker in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench import job
from bench.brokers import Broker
from bench.rounds import Plan, Row, Sample, measure

RECORDS = 1_000_000
RECORD_BYTES = 100
BATCHES = 5
PARTITIONS = 4
SECTION = "Spark on two cores"
SOURCE, TARGET = "bench-spark", "bench-spark-copy"


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """Three jobs in turn on all sides; each row's CPU is the broker's share of what broker and Spark took."""
    records = int(RECORDS * plan.scale)
    lives: dict[str, list[dict[str, dict[str, float]]]] = {broker.name: [] for broker in brokers}

    def live(broker: Broker) -> Sample:
        figures = three_jobs(broker, records)
        lives[broker.name].append(figures)
        return Sample(figures["write"]["seconds"])

    runners = {broker.name: (lambda b=broker: live(b)) for broker in brokers}
    measured = measure(Row(SECTION, "", "s"), runners, plan.rounds)
    labels = {
        "write": f"write {records:,} x {RECORD_BYTES} B",
        "read": "read and count distinct",
        "copy": f"copy as a stream in {BATCHES} batches",
    }
    for kind, label in labels.items():
        row = Row(SECTION, label, "s", "of all CPU", lower_is_better=True, digits=2)
        row.notes = measured.notes if kind == "write" else []
        row.samples = {
            name: [Sample(figures[kind]["seconds"], share(figures[kind])) for figures in got]
            for name, got in lives.items()
            if got
        }
        yield row


def three_jobs(broker: Broker, records: int) -> dict[str, dict[str, float]]:
    """One round on one side, with topics of its own."""
    for topic in (SOURCE, TARGET):
        broker.create_topic(topic, PARTITIONS)
    try:
        return job.run(
            "bench.spark_work:three_jobs",
            bootstrap=broker.bootstrap,
            broker_pid=broker.pid,
            source=SOURCE,
            target=TARGET,
            records=records,
            record_bytes=RECORD_BYTES,
            batches=BATCHES,
        )
    finally:
        for topic in (SOURCE, TARGET):
            broker.delete_topic(topic)


def share(figures: dict[str, float]) -> float | None:
    """The broker's part of the CPU time of broker and Spark; None where the broker's cannot be seen."""
    if not figures["broker_cpu"]:
        return None
    return figures["broker_cpu"] / (figures["broker_cpu"] + figures["spark_cpu"])

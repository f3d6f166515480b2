"""Three brokers: acks=all throughput, how far followers are behind under load, and faults (`failover`).

Three of ours, and beside them three of Apache Kafka 3.9.2, which is the last one with ZooKeeper. CPU is that
of all three brokers together, for a record.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from bench import failover, job
from bench.brokers import Broker
from bench.rounds import Plan, Row, Sample, cpu_of, measure
from bench.three import IDS, Three, rotated
from tests.support.zookeeper_process import ZookeeperProcess

SECTION = "Three brokers, three replicas, acks=all"
BULK = {100: 400_000, 1024: 100_000}  # records a round
SINGLE = ((100, 1), (1024, 1), (1024, 60))  # record bytes, records a batch
LAG_SECTION = "Written by the leader and all followers, 1 KiB records at full speed beside"


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """Throughput, lag, then what ends brokers."""
    kinds = [broker.name for broker in brokers if broker.process is not None]
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZookeeperProcess())
        sides = [stack.enter_context(Three(kind, zookeeper.address)) for kind in kinds]
        yield from throughput(sides, plan)
        yield from lag(sides, plan)
        yield from failover.rows(sides, plan)


def throughput(sides: Sequence[Three], plan: Plan) -> Iterator[Row]:
    """librdkafka at full speed, and one batch at a time."""
    for partitions in (1, 3):
        for record_bytes, most in BULK.items():
            topic = f"bench-bulk-{partitions}-{record_bytes}"
            records = int(most * plan.scale)
            for side in sides:
                side.create_topic(topic, [rotated(IDS[index]) for index in range(partitions)])
                _bulk(side, topic, partitions, record_bytes, records)
            label = f"librdkafka, {record_bytes:,} B, {partitions} partition{'s'[: partitions - 1]}"
            row = Row(SECTION, label, "records/s", "us/record")
            yield measure(row, _each(sides, _bulk, topic, partitions, record_bytes, records), plan.rounds)
            for side in sides:
                side.delete_topic(topic)
    for side in sides:
        side.create_topic("bench-single", [rotated(1)])
        _single(side, 100, 1, plan.warm_up_seconds / 2)
    for record_bytes, records in SINGLE:
        label = f"one batch of {records} x {record_bytes:,} B in flight"
        row = Row(SECTION, label, "batches/s", "us/batch")
        yield measure(row, _each(sides, _single, record_bytes, records, plan.seconds), plan.rounds)


def lag(sides: Sequence[Three], plan: Plan) -> Iterator[Row]:
    """How long a record takes to be with all three, next to how long it takes to be with the leader."""
    results: dict[str, list[dict[str, float]]] = {side.kind: [] for side in sides}
    for side in sides:
        side.create_topic("bench-lag", [rotated(1)])

    def run(side: Three) -> Sample:
        results[side.kind].append(_lag(side, plan.seconds * 2))
        return Sample(results[side.kind][-1]["p99"])

    measured = measure(Row(LAG_SECTION, "", "ms"), _each(sides, run), plan.rounds)
    for key, label in (
        ("p50", "acks=all, p50"),
        ("p99", "acks=all, p99"),
        ("max", "acks=all, longest"),
        ("leader_p50", "acks=1, p50"),
        ("leader_p99", "acks=1, p99"),
    ):
        row = Row(LAG_SECTION, label, "ms", lower_is_better=True, digits=1)
        row.notes = measured.notes if key == "p50" else []
        row.samples = {kind: [Sample(each[key]) for each in got] for kind, got in results.items() if got}
        yield row
    for side in sides:
        side.delete_topic("bench-lag")


def _each(
    sides: Sequence[Three], run: Callable[..., Sample], *arguments: object
) -> dict[str, Callable[[], Sample]]:
    return {side.kind: partial(run, side, *arguments) for side in sides}


def _bulk(side: Three, topic: str, partitions: int, record_bytes: int, records: int) -> Sample:
    before = sum(side.cpu_seconds().values())
    done = job.run(
        "bench.cluster_load:bulk",
        bootstrap=side.bootstrap_servers,
        topic=topic,
        partitions=partitions,
        record_bytes=record_bytes,
        records=records,
    )
    cpu = cpu_of(before, sum(side.cpu_seconds().values()), done["records"])
    return Sample(done["records"] / done["seconds"], cpu and cpu * 1e6)


def _single(side: Three, record_bytes: int, records: int, seconds: float) -> Sample:
    before = sum(side.cpu_seconds().values())
    host, port = side.address(side.leader_id("bench-single"))
    done = job.run(
        "bench.cluster_load:one_at_a_time",
        host=host,
        port=port,
        topic="bench-single",
        record_bytes=record_bytes,
        records=records,
        seconds=seconds,
    )
    cpu = cpu_of(before, sum(side.cpu_seconds().values()), done["batches"])
    return Sample(done["batches"] / done["seconds"], cpu and cpu * 1e6)


def _lag(side: Three, seconds: float) -> dict[str, float]:
    """Probes in the middle of a bulk load."""
    arguments = {
        "bootstrap": side.bootstrap_servers,
        "topic": "bench-lag",
        "partitions": 1,
        "record_bytes": 1024,
        "records": 1,
        "seconds": seconds + 2,
    }
    failed: list[BaseException] = []

    def load() -> None:
        try:
            job.run("bench.cluster_load:bulk", **arguments)
        except job.JobFailed as error:
            failed.append(error)

    loading = threading.Thread(target=load)
    loading.start()
    host, port = side.address(side.leader_id("bench-lag"))
    done = job.run(
        "bench.cluster_load:probe",
        host=host,
        port=port,
        topic="bench-lag",
        record_bytes=100,
        seconds=seconds,
    )
    loading.join()
    if failed:
        raise failed[0]
    return done

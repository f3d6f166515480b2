"""Transactions: how long one takes, how many there are in a second, what open ones cost those who read, and a
start with many transactional ids.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from bench import job, wire
from bench.brokers import Broker
from bench.driver import call, connect
from bench.rounds import Plan, Row, Sample, cpu_of, measure
from bench.starting import second_lives
from ottla.client import ClientError, KafkaClient
from protocol import messages as m

TOPIC, READ_TOPIC = "bench-transactions", "bench-read-committed"
PARTITIONS = 3
RECORDS = 10
PRODUCERS = 8
OFFSETS = 500  # batches to read
READERS, DEPTH = 64, 16
OPEN = 100  # transactions at once
IDS = 100_000
ID_PREFIX = "bench-id-"
CONNECTIONS = 4
LIMIT_SECONDS = 300.0
LIST_VERSION = 1
_run = itertools.count()


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """All rows; each round uses transactional ids of its own."""
    for broker in brokers:
        broker.create_topic(TOPIC, PARTITIONS)
        _transact(broker, PRODUCERS, plan.warm_up_seconds)
    yield from _latency(brokers, plan)
    label = f"{PRODUCERS} producers, {RECORDS} records on {PARTITIONS} partitions each"
    row = Row("Transactions at full speed, librdkafka", label, "transactions/s", "us/transaction")
    yield measure(row, {b.name: partial(_rate, b, plan.seconds * 2) for b in brokers}, plan.rounds)
    yield from _readers(brokers, plan)
    for broker in brokers:
        broker.delete_topic(TOPIC)
        broker.delete_topic(READ_TOPIC)
    ids = int(IDS * plan.scale)
    row = Row("Loading transactional ids", f"start with {ids:,}, until all are listed", "s", digits=2)
    row.lower_is_better = True
    yield from second_lives(row, brokers, lambda broker: register(broker, ids), look, LIMIT_SECONDS)


def _latency(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """One producer's transactions; the two figures come from the same rounds."""
    section = f"One transaction of {RECORDS} records on {PARTITIONS} partitions, librdkafka"
    results: dict[str, list[dict[str, Any]]] = {broker.name: [] for broker in brokers}

    def run(broker: Broker) -> Sample:
        done = _transact(broker, 1, plan.seconds * 2)
        results[broker.name].append(done)
        return Sample(done["p50"])

    runners: dict[str, Callable[[], Sample]] = {broker.name: partial(run, broker) for broker in brokers}
    row = Row(section, "p50, from begin to the answer of the commit", "ms", lower_is_better=True, digits=2)
    yield measure(row, runners, plan.rounds)
    row = Row(section, "p99", "ms", lower_is_better=True, digits=2)
    row.samples = {name: [Sample(done["p99"]) for done in of] for name, of in results.items() if of}
    yield row


def _transact(broker: Broker, producers: int, seconds: float) -> dict[str, Any]:
    return job.run(
        "bench.transaction_load:transact",
        host=broker.host,
        port=broker.port,
        topic=TOPIC,
        producers=producers,
        records=RECORDS,
        seconds=seconds,
        prefix=f"bench-{next(_run)}",
    )


def _rate(broker: Broker, seconds: float) -> Sample:
    before = broker.cpu_seconds()
    done = _transact(broker, PRODUCERS, seconds)
    cpu = cpu_of(before, broker.cpu_seconds(), done["transactions"])
    return Sample(done["transactions"] / done["seconds"], cpu and cpu * 1e6)


def _readers(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """The same fetches with no, one and many transactions open behind what they read."""
    for broker in brokers:
        broker.create_topic(READ_TOPIC, 1)
        _fill(broker)
        _read(broker, plan.warm_up_seconds)
    section = f"Fetch of committed records, one of 100 B an answer, {READERS} x {DEPTH}"
    for count, label in ((0, "no open transaction"), (1, "one open"), (OPEN, f"{OPEN} more open")):
        for broker in brokers if count else ():
            job.run(
                "bench.transaction_load:leave_open",
                host=broker.host,
                port=broker.port,
                topic=READ_TOPIC,
                producers=count,
                prefix=f"bench-open-{next(_run)}",
            )
        runners = {broker.name: partial(_read, broker, plan.seconds) for broker in brokers}
        yield measure(Row(section, label, "requests/s", "us/request"), runners, plan.rounds)


def _fill(broker: Broker) -> None:
    batch = wire.make_batch(100, 1, int(time.time() * 1000))
    with connect(broker.host, broker.port) as sock:
        frame = wire.produce_frame(READ_TOPIC, 0, batch)
        for _ in range(OFFSETS):
            wire.check_produced(call(sock, frame))


def _read(broker: Broker, seconds: float) -> Sample:
    before = broker.cpu_seconds()
    done = job.run(
        "bench.transaction_load:read_committed",
        host=broker.host,
        port=broker.port,
        topic=READ_TOPIC,
        offsets=OFFSETS,
        connections=READERS,
        depth=DEPTH,
        seconds=seconds,
    )
    cpu = cpu_of(before, broker.cpu_seconds(), done["answers"])
    return Sample(done["answers"] / done["seconds"], cpu and cpu * 1e6)


def register(broker: Broker, count: int) -> list[str]:
    job.run(
        "bench.transaction_load:register",
        host=broker.host,
        port=broker.port,
        prefix=ID_PREFIX,
        count=count,
        connections=CONNECTIONS,
    )
    return [f"{ID_PREFIX}{each}" for each in range(count)]


def look(broker: Broker, missing: list[str]) -> None:
    """All or nothing: a list is refused as long as one partition of the coordinator is being loaded."""
    with KafkaClient(broker.bootstrap, "bench", timeout_s=60) as client:
        answer = client.call(m.ListTransactionsRequest(), version=LIST_VERSION)
    if answer.error_code:
        raise ClientError(f"the list was refused with error {answer.error_code}")
    listed = {each.transactional_id for each in answer.transaction_states}
    missing[:] = [each for each in missing if each not in listed]
    if missing:
        raise ClientError(f"{len(missing)} transactional ids are not listed")

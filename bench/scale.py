"""Ten thousand partitions on one broker: start, stop, memory, descriptors, idle CPU, cost of an append.

Each partition holds a few records. An append is one produce request of one small record, to random
partitions of all of them and of ten, in turns; the figure is how much longer the former takes. A start counts
from the start of the process after a clean stop until every partition tells its end offset.
"""

from __future__ import annotations

import os
import random
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial

from bench import brokers as made
from bench import machine, wire
from bench.brokers import Broker
from bench.driver import Ring, call, connect, drive
from bench.offsets import end_offsets
from bench.rounds import Plan, Row, Sample, measure
from bench.starting import start_until_served
from protocol import messages as m

PARTITIONS = 10_000
TOPICS = 10  # Apache Kafka makes no 10,000 partitions with one request
FEW = 10  # partitions to compare with
FEW_TOPIC = "bench-scale-f"  # as long as the names of the others: the requests have one size
RECORDS = 3  # of each partition
RECORD_BYTES = 100
TOGETHER = 250  # partitions of a request that fills them
FRAMES = 2_000
TURNS = 3
IDLE_SECONDS = 10.0
SETTLE_SECONDS = 2.0
LIMIT_SECONDS = 600.0
MIB = 1 << 20
SECTION = "Many partitions"


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """One life of a broker gives all figures of a round."""
    kinds = [broker.name for broker in brokers if broker.process is not None]
    partitions = int(PARTITIONS * plan.scale) // TOPICS * TOPICS
    lives: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}

    def live(kind: str) -> Sample:
        lives[kind].append(one_life(kind, partitions, plan.seconds))
        return Sample(lives[kind][-1]["start"])

    measured = measure(Row(SECTION, "", "s"), {kind: partial(live, kind) for kind in kinds}, plan.rounds)
    figures = (
        ("create", f"{partitions:,} partitions created and led", "s", 1),
        ("stop", "clean stop", "s", 1),
        ("start", "clean start to all partitions served", "s", 2),
        ("rss", "resident", "MiB", 0),
        ("descriptors", "descriptors open", "", 0),
        ("idle", "CPU while idle", "%", 1),
        ("append", f"an append, {FEW} partitions", "us", 1),
        ("append ratio", f"an append, {partitions:,} partitions to {FEW}", "x", 2),
        ("crowd ratio", "the same, 64 connections at once", "x", 2),
    )
    for key, label, unit, digits in figures:
        row = Row(SECTION, label, unit, lower_is_better=True, digits=digits)
        row.notes = measured.notes if key == "create" else []
        row.samples = {k: [Sample(life[key]) for life in v] for k, v in lives.items() if v}
        yield row


def topic_name(number: int) -> str:
    return f"bench-scale-{number}"


def one_life(kind: str, partitions: int, seconds: float) -> dict[str, float]:
    """Create, fill, stop, start, look, append."""
    broker = made.make(kind)
    process = broker.process
    assert process is not None
    process.start_timeout_s = process.stop_timeout_s = LIMIT_SECONDS
    each = partitions // TOPICS
    found: dict[str, float] = {}
    try:
        process.start()
        begin = time.perf_counter()
        for number in range(TOPICS):
            broker.create_topic(topic_name(number), each)
        found["create"] = time.perf_counter() - begin
        broker.create_topic(FEW_TOPIC, FEW)
        for number in range(TOPICS):
            fill(broker, topic_name(number), each)
        fill(broker, FEW_TOPIC, FEW)
        begin = time.perf_counter()
        process.stop()
        found["stop"] = time.perf_counter() - begin
        found["start"] = start_to_all_served(broker, each)
        time.sleep(SETTLE_SECONDS)
        used = broker.cpu_seconds()
        time.sleep(IDLE_SECONDS)
        found["idle"] = (broker.cpu_seconds() - used) / IDLE_SECONDS * 100
        for number in range(TOPICS):
            fill(broker, topic_name(number), each)  # the first append after a start opens files
        found |= appends(broker, each, seconds)
        assert broker.pid is not None
        found["rss"] = machine.rss_bytes(broker.pid) / MIB
        found["descriptors"] = len(os.listdir(f"/proc/{broker.pid}/fd"))
    finally:
        broker.stop()
    return found


def fill(broker: Broker, topic: str, partitions: int) -> None:
    """A few batches of one record to each partition."""
    batch = wire.make_batch(RECORD_BYTES, 1, int(time.time() * 1000)).data
    with connect(*broker.address) as sock:
        sock.settimeout(LIMIT_SECONDS)
        for _ in range(RECORDS):
            for first in range(0, partitions, TOGETHER):
                indexes = range(first, min(first + TOGETHER, partitions))
                write_to_all(sock, topic, indexes, batch)


def write_to_all(sock: socket.socket, topic: str, indexes: range, batch: bytes) -> None:
    """One request that writes the batch to all these partitions. Raises RefusedError."""
    request = m.ProduceRequest(
        acks=1,
        timeout_ms=wire.TIMEOUT_MS,
        topic_data=[
            m.ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[
                    m.ProduceRequest.PartitionProduceData(index=index, records=batch) for index in indexes
                ],
            )
        ],
    )
    answer = call(sock, wire.framed(request, wire.PRODUCE_VERSION))
    response = wire.answered(m.ProduceResponse, wire.PRODUCE_VERSION, answer)
    refused = [got.error_code for got in response.responses[0].partition_responses if got.error_code]
    if refused:
        raise wire.RefusedError(f"Produce answered error {refused[0]} for {len(refused)} partitions")


def start_to_all_served(broker: Broker, each: int) -> float:
    """Seconds from the start of the process until every partition has told its end."""

    def look(missing: list[str]) -> None:
        while missing:
            ends = end_offsets(*broker.address, missing[-1], each, LIMIT_SECONDS)
            if set(ends) != {RECORDS}:
                raise RuntimeError(f"{missing[-1]} holds {sum(ends)} records instead of {RECORDS * each}")
            missing.pop()

    return start_until_served(broker, [topic_name(number) for number in range(TOPICS)], look, LIMIT_SECONDS)


def appends(broker: Broker, each: int, seconds: float) -> dict[str, float]:
    """Microseconds of an append to few partitions, and how many times as long one to all of them takes."""
    draw = random.Random(5)
    everywhere = [(topic_name(number), index) for number in range(TOPICS) for index in range(each)]
    targets = {"few": [(FEW_TOPIC, index) for index in range(FEW)], "all": everywhere}
    found: dict[str, float] = {}
    for key, connections in (("append", 1), ("crowd", 64)):
        took: dict[str, list[float]] = {name: [] for name in targets}
        for _ in range(TURNS):
            for name, chosen in targets.items():
                took[name].append(append_micros(broker, chosen, draw, connections, seconds))
        few, all_of_them = (statistics.median(took[name]) for name in targets)
        found[key] = few
        found[f"{key} ratio"] = all_of_them / few
    return found


def append_micros(
    broker: Broker, targets: Sequence[tuple[str, int]], draw: random.Random, connections: int, seconds: float
) -> float:
    """Microseconds for each request, one in flight on each connection."""
    batch = wire.make_batch(RECORD_BYTES, 1, int(time.time() * 1000))
    rings = [
        Ring([wire.produce_frame(*draw.choice(targets), batch) for _ in range(FRAMES)], 1)
        for _ in range(connections)
    ]
    totals = drive(broker.address, rings, 1, seconds, wire.check_produced)
    return totals.seconds / totals.answers * 1e6

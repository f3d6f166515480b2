"""Bulk: batches of about 60 KB and 1 MiB, of 1 KiB and of 100 B records, on four connections.

Produce sends one batch a request to a partition of its connection's own; Fetch reads the same batches
back, one an answer, from front to back. The floors: a loop that reads frames and writes them to a file,
and a bare sendfile of slices of the same size.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from bench import job, wire
from bench.brokers import Broker
from bench.driver import Ring, drive
from bench.floors import Floor
from bench.offsets import end_offsets
from bench.rounds import Plan, Row, Sample, cpu_of, measure

CONNECTIONS = 4
RECORD_SIZES = (1024, 100)
BATCH_SIZES = (("60 KB", 60_000), ("1 MiB", 1_048_588))  # the second is Kafka's default message.max.bytes
ROUND_BYTES = 400 << 20  # a round of Produce; Fetch reads what the rounds have written
SECTION = "Bulk, 4 connections: Produce with acks=1 and Fetch from the page cache"


def produce(
    host: str, port: int, topic: str, record_bytes: int, batch_bytes: int, max_bytes: int
) -> dict[str, float]:
    """The producing client; runs in a process of its own. An empty topic means the floor."""
    batch = wire.batch_of_size(record_bytes, batch_bytes, int(time.time() * 1000))
    rings = [Ring([wire.produce_frame(topic or "bench-bulk", p, batch)], 1) for p in range(CONNECTIONS)]
    before = sum(end_offsets(host, port, topic, CONNECTIONS)) if topic else 0
    check = wire.check_produced if topic else len
    totals = drive((host, port), rings, 1, 60.0, check, max_bytes)
    if topic:
        stored = sum(end_offsets(host, port, topic, CONNECTIONS)) - before
        expected = (totals.answers + totals.in_flight + CONNECTIONS) * batch.records
        if stored != expected:
            raise RuntimeError(f"{expected} records were acknowledged, {stored} are stored")
    return {"bytes": totals.request_bytes, "seconds": totals.seconds}


def fetch(
    host: str, port: int, topic: str, record_bytes: int, batch_bytes: int, seconds: float
) -> dict[str, float]:
    """The consuming client; runs in a process of its own. An empty topic means the floor."""
    batch = wire.batch_of_size(record_bytes, batch_bytes, int(time.time() * 1000))
    ends = end_offsets(host, port, topic, CONNECTIONS) if topic else [64 * batch.records] * CONNECTIONS
    name, size = topic or "bench-bulk", len(batch.data)
    rings = [
        Ring([wire.fetch_frame(name, p, at, size) for at in range(0, end, batch.records)], 1)
        for p, end in enumerate(ends)
    ]
    check = partial(_whole_batch, size) if topic else len
    totals = drive((host, port), rings, 1, seconds, check)
    return {"bytes": totals.answer_bytes, "seconds": totals.seconds}


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """For each size: write, then read what was written, then remove it."""
    directory = Path(tempfile.mkdtemp(prefix="bench-floor-"))
    try:
        for record_bytes in RECORD_SIZES:
            for name, batch_bytes in BATCH_SIZES:
                yield from _pair(brokers, plan, record_bytes, name, batch_bytes, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _pair(
    brokers: Sequence[Broker], plan: Plan, record_bytes: int, name: str, batch_bytes: int, directory: Path
) -> Iterator[Row]:
    topic = f"bench-bulk-{record_bytes}-{batch_bytes}"
    label = f"{name} of {record_bytes:,} B records"
    amount = int(ROUND_BYTES * plan.scale)
    for broker in brokers:
        broker.create_topic(topic, CONNECTIONS)
        produce_once(broker, topic, record_bytes, batch_bytes, amount // 2)
    with Floor("write", str(directory / "written")) as floor:
        runners = {}
        for broker in brokers:
            runners[broker.name] = partial(produce_once, broker, topic, record_bytes, batch_bytes, amount)
        runners["floor"] = partial(produce_floor, floor, record_bytes, batch_bytes, amount)
        yield measure(Row(SECTION, f"Produce {label}", "MB/s", "CPU s/GB"), runners, plan.rounds)
    source = directory / "source"
    size = len(wire.batch_of_size(record_bytes, batch_bytes, 0).data)
    source.write_bytes(bytes(64 * size))
    with Floor("sendfile", str(source), str(size + 60)) as floor:
        runners = {}
        for broker in brokers:
            fetch_once(broker, topic, record_bytes, batch_bytes, plan.warm_up_seconds / 4)
            runners[broker.name] = partial(fetch_once, broker, topic, record_bytes, batch_bytes, plan.seconds)
        runners["floor"] = partial(fetch_floor, floor, record_bytes, batch_bytes, plan.seconds)
        yield measure(Row(SECTION, f"Fetch {label}", "MB/s", "CPU s/GB"), runners, plan.rounds)
    for broker in brokers:
        broker.delete_topic(topic)
    for leftover in directory.iterdir():
        leftover.unlink()


def produce_once(broker: Broker, topic: str, record_bytes: int, batch_bytes: int, amount: int) -> Sample:
    before = broker.cpu_seconds()
    done = _produce(broker.address, topic, record_bytes, batch_bytes, amount)
    cpu = cpu_of(before, broker.cpu_seconds(), done["bytes"])
    return Sample(done["bytes"] / done["seconds"] / 1e6, cpu and cpu * 1e9)


def produce_floor(floor: Floor, record_bytes: int, batch_bytes: int, amount: int) -> Sample:
    done = _produce(floor.address, "", record_bytes, batch_bytes, amount)
    return Sample(done["bytes"] / done["seconds"] / 1e6)


def fetch_once(broker: Broker, topic: str, record_bytes: int, batch_bytes: int, seconds: float) -> Sample:
    before = broker.cpu_seconds()
    done = _fetch(broker.address, topic, record_bytes, batch_bytes, seconds)
    cpu = cpu_of(before, broker.cpu_seconds(), done["bytes"])
    return Sample(done["bytes"] / done["seconds"] / 1e6, cpu and cpu * 1e9)


def fetch_floor(floor: Floor, record_bytes: int, batch_bytes: int, seconds: float) -> Sample:
    done = _fetch(floor.address, "", record_bytes, batch_bytes, seconds)
    return Sample(done["bytes"] / done["seconds"] / 1e6)


def _produce(
    address: tuple[str, int], topic: str, record_bytes: int, batch_bytes: int, amount: int
) -> dict[str, float]:
    return job.run(
        "bench.bulk:produce",
        host=address[0],
        port=address[1],
        topic=topic,
        record_bytes=record_bytes,
        batch_bytes=batch_bytes,
        max_bytes=amount,
    )


def _fetch(
    address: tuple[str, int], topic: str, record_bytes: int, batch_bytes: int, seconds: float
) -> dict[str, float]:
    return job.run(
        "bench.bulk:fetch",
        host=address[0],
        port=address[1],
        topic=topic,
        record_bytes=record_bytes,
        batch_bytes=batch_bytes,
        seconds=seconds,
    )


def _whole_batch(size: int, answer: bytes) -> None:
    got = len(wire.check_fetched(answer))
    if got != size:
        raise wire.RefusedError(f"a fetch of one batch of {size} bytes brought {got}")

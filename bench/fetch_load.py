"""One-record Fetch requests: connections x depth, rotating over 12 partitions at advancing offsets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

from bench import job, wire
from bench.brokers import Broker
from bench.driver import Ring, call, connect, drive
from bench.floors import Floor
from bench.produce_load import PARTITIONS, RECORD_BYTES, SHAPES, SINGLE_PARTITION
from bench.rounds import Plan, Row, Sample, cpu_of, measure

TOPIC = "bench-fetch"
OFFSETS = 500  # batches in each partition
RING = 1200
SECTION = "Fetch, one record of 100 B an answer"


def fill(host: str, port: int) -> dict[str, int]:
    """Bring single-record batches into every partition; runs in a process of its own."""
    batch = wire.make_batch(RECORD_BYTES, 1, int(time.time() * 1000))
    with connect(host, port) as sock:
        for partition in range(PARTITIONS):
            frame = wire.produce_frame(TOPIC, partition, batch)
            for _ in range(OFFSETS):
                wire.check_produced(call(sock, frame))
    return {"filled": PARTITIONS * OFFSETS}


def load(
    host: str, port: int, echo: bool, partitions: int, connections: int, depth: int, seconds: float
) -> dict[str, float]:
    """The client; runs in a process of its own."""
    frames = [wire.fetch_frame(TOPIC, k % partitions, k * 7 % OFFSETS, 1) for k in range(RING)]
    rings = []
    for i in range(connections):
        at = i * 31 % RING
        rings.append(Ring([*frames[at:], *frames[:at]], depth))
    totals = drive((host, port), rings, depth, seconds, len if echo else _check)
    return {"answers": totals.answers, "seconds": totals.seconds}


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """Create and fill the topic, warm up, measure."""
    for broker in brokers:
        broker.create_topic(TOPIC, PARTITIONS)
        job.run("bench.fetch_load:fill", host=broker.host, port=broker.port)
        run_once(broker, PARTITIONS, 64, 16, plan.warm_up_seconds)
    with Floor("echo") as floor:
        shapes = [(*shape, PARTITIONS) for shape in SHAPES] + [(*shape, 1) for shape in SINGLE_PARTITION]
        for connections, depth, partitions in shapes:
            label = f"{connections} x {depth}" + (", one partition" if partitions == 1 else "")
            runners = {
                broker.name: partial(run_once, broker, partitions, connections, depth, plan.seconds)
                for broker in brokers
            }
            if partitions > 1:
                runners["floor"] = partial(run_floor, floor, connections, depth, plan.seconds)
            yield measure(Row(SECTION, label, "requests/s", "us/request"), runners, plan.rounds)
    for broker in brokers:
        broker.delete_topic(TOPIC)


def run_once(broker: Broker, partitions: int, connections: int, depth: int, seconds: float) -> Sample:
    before = broker.cpu_seconds()
    done = _run(broker.address, False, partitions, connections, depth, seconds)
    cpu = cpu_of(before, broker.cpu_seconds(), done["answers"])
    return Sample(done["answers"] / done["seconds"], cpu and cpu * 1e6)


def run_floor(floor: Floor, connections: int, depth: int, seconds: float) -> Sample:
    done = _run(floor.address, True, PARTITIONS, connections, depth, seconds)
    return Sample(done["answers"] / done["seconds"])


def _run(
    address: tuple[str, int], echo: bool, partitions: int, connections: int, depth: int, seconds: float
) -> dict[str, float]:
    return job.run(
        "bench.fetch_load:load",
        host=address[0],
        port=address[1],
        echo=echo,
        partitions=partitions,
        connections=connections,
        depth=depth,
        seconds=seconds,
    )


def _check(answer: bytes) -> None:
    if not wire.check_fetched(answer):
        raise wire.RefusedError("a fetch at an existing offset brought no records")

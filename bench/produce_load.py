"""One-record Produce requests: connections x depth, each connection rotating over 12 partitions.

Every acknowledged request is verified by the end offsets of the partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

from bench import job, wire
from bench.brokers import Broker
from bench.driver import Ring, drive
from bench.floors import Floor
from bench.offsets import end_offsets
from bench.rounds import Plan, Row, Sample, cpu_of, measure

PARTITIONS = 12
RECORD_BYTES = 100
SHAPES = ((1, 1), (16, 1), (64, 1), (1, 16), (16, 16), (64, 16))
SINGLE_PARTITION = ((64, 1), (64, 16))
SECTION = "Produce, one record of 100 B a request, acks=1"


def load(
    host: str, port: int, topic: str, partitions: int, connections: int, depth: int, seconds: float
) -> dict[str, float]:
    """The client; runs in a process of its own. An empty topic means an echo server."""
    batch = wire.make_batch(RECORD_BYTES, 1, int(time.time() * 1000))
    name = topic or "bench-produce"
    frames = [wire.produce_frame(name, p, batch) for p in range(partitions)]
    rings = [Ring(_rotated(frames, i), depth) for i in range(connections)]
    before = sum(end_offsets(host, port, topic, partitions)) if topic else 0
    check = wire.check_produced if topic else len
    totals = drive((host, port), rings, depth, seconds, check)
    if topic:
        stored = sum(end_offsets(host, port, topic, partitions)) - before
        expected = totals.answers + totals.in_flight + connections  # and the first of each connection
        if stored != expected:
            raise RuntimeError(f"{expected} records were acknowledged, {stored} are stored")
    return {"answers": totals.answers, "seconds": totals.seconds, "client_cpu": time.process_time()}


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """Create the topics, warm up, measure."""
    for broker in brokers:
        broker.create_topic("bench-produce", PARTITIONS)
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
        broker.delete_topic("bench-produce")


def run_once(broker: Broker, partitions: int, connections: int, depth: int, seconds: float) -> Sample:
    before = broker.cpu_seconds()
    done = job.run(
        "bench.produce_load:load",
        host=broker.host,
        port=broker.port,
        topic="bench-produce",
        partitions=partitions,
        connections=connections,
        depth=depth,
        seconds=seconds,
    )
    cpu = cpu_of(before, broker.cpu_seconds(), done["answers"])
    return Sample(done["answers"] / done["seconds"], cpu and cpu * 1e6)


def run_floor(floor: Floor, connections: int, depth: int, seconds: float) -> Sample:
    host, port = floor.address
    done = job.run(
        "bench.produce_load:load",
        host=host,
        port=port,
        topic="",
        partitions=PARTITIONS,
        connections=connections,
        depth=depth,
        seconds=seconds,
    )
    return Sample(done["answers"] / done["seconds"])


def _rotated(frames: Sequence[bytes], by: int) -> list[bytes]:
    at = by % len(frames)
    return [*frames[at:], *frames[:at]]

"""What a request costs two brokers of one machine (`ottla serve --brokers 2`), beside one broker alone.

The load is the same: as many connections, each with as many one-record requests in flight, over a topic of
twelve partitions with one replica each. With two brokers each leads half of the partitions and has half of
the connections. The figure is CPU time of all processes, the supervisor's too, for one request. Both kinds
run at once, and are measured in turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

from bench import job, machine, wire
from bench.brokers import Broker
from bench.driver import Ring, call, connect, drive_several
from bench.offsets import ends_of
from bench.rounds import Plan, Row, Sample, measure
from ottla.client import KafkaClient
from tests.support.ottla_process import OttlaProcess
from tests.support.several_brokers import SeveralBrokers

COUNT = 2
PARTITIONS = 12
RECORD_BYTES = 100
OFFSETS = 500  # batches in each partition to fetch from
KINDS = (
    "fetch",
    "produce",
)  # in this order: what is produced drives what is fetched out of the tails' memory
SHAPES = ((16, 1), (64, 1), (64, 16))
TOPIC = "bench-several"
FETCHED = "bench-fetched"
IDLE_SECONDS = 5.0
SECTION = "One broker alone and two under one command, the same load"

Address = tuple[str, int]


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """Of ours only: the brokers of the other parts are left alone."""
    with OttlaProcess() as alone, SeveralBrokers(COUNT) as several:
        sides = {f"--brokers {COUNT}": several, "one broker": alone}
        for process in sides.values():
            _prepare(process.bootstrap_servers)
        for kind in KINDS:
            for process in sides.values():
                _cost(process, kind, 64, 16, plan.warm_up_seconds / 4)
            for connections, depth in SHAPES:
                runners = {
                    name: partial(_cost, process, kind, connections, depth, plan.seconds)
                    for name, process in sides.items()
                }
                row = _row(f"{kind}, {connections} x {depth}", "us of CPU/request", list(sides))
                yield measure(row, runners, plan.rounds)
        idle = {name: partial(_idle, process) for name, process in sides.items()}
        yield measure(_row("idle", "ms of CPU/s", list(sides)), idle, plan.rounds)


def _row(label: str, unit: str, columns: list[str]) -> Row:
    return Row(SECTION, label, unit, lower_is_better=True, digits=1, columns=columns)


def load(servers: str, kind: str, connections: int, depth: int, seconds: float) -> dict[str, float]:
    """The client; runs in a process of its own. Connections go to the leaders in turns."""
    topic = TOPIC if kind == "produce" else FETCHED
    leaders = _leaders(servers, topic)
    frames = {address: _frames(kind, topic, partitions) for address, partitions in leaders.items()}
    rings = []
    for i in range(connections):
        address = list(leaders)[i % len(leaders)]
        at = i % len(frames[address])
        rings.append((address, Ring([*frames[address][at:], *frames[address][:at]], depth)))
    before = _stored(topic, leaders)
    check = wire.check_produced if kind == "produce" else _check_fetched
    totals = drive_several(rings, depth, seconds, check)
    if kind == "produce":
        expected = totals.answers + totals.in_flight + connections  # and the first of each connection
        if (stored := _stored(topic, leaders) - before) != expected:
            raise RuntimeError(f"{expected} records were acknowledged, {stored} are stored")
    return {"answers": totals.answers, "seconds": totals.seconds}


def fill(servers: str) -> dict[str, int]:
    """Bring single-record batches into every partition; runs in a process of its own."""
    batch = wire.make_batch(RECORD_BYTES, 1, int(time.time() * 1000))
    for address, partitions in _leaders(servers, FETCHED).items():
        with connect(*address) as sock:
            for partition in partitions:
                frame = wire.produce_frame(FETCHED, partition, batch)
                for _ in range(OFFSETS):
                    wire.check_produced(call(sock, frame))
    return {"filled": PARTITIONS * OFFSETS}


def _prepare(servers: str) -> None:
    with KafkaClient(servers, "bench", timeout_s=120) as client:
        for topic in (TOPIC, FETCHED):
            client.create_topic(topic, PARTITIONS)
    job.run("bench.several:fill", servers=servers)


def _leaders(servers: str, topic: str) -> dict[Address, list[int]]:
    """The partitions that each broker leads."""
    found: dict[Address, list[int]] = {}
    with KafkaClient(servers, "bench", timeout_s=120) as client:
        for partition in range(PARTITIONS):
            leader = client.leader(topic, partition)
            found.setdefault(client.nodes[leader], []).append(partition)
    return found


def _frames(kind: str, topic: str, partitions: Sequence[int]) -> list[bytes]:
    if kind == "produce":
        batch = wire.make_batch(RECORD_BYTES, 1, int(time.time() * 1000))
        return [wire.produce_frame(topic, partition, batch) for partition in partitions]
    return [
        wire.fetch_frame(topic, partition, k * 7 % OFFSETS, 1)
        for k in range(1200 // PARTITIONS)
        for partition in partitions
    ]


def _check_fetched(answer: bytes) -> None:
    if not wire.check_fetched(answer):
        raise wire.RefusedError("a fetch at an existing offset brought no records")


def _stored(topic: str, leaders: dict[Address, list[int]]) -> int:
    return sum(sum(ends_of(*address, topic, partitions)) for address, partitions in leaders.items())


def _cost(process: OttlaProcess, kind: str, connections: int, depth: int, seconds: float) -> Sample:
    before = machine.cpu_seconds(process.pid)
    done = job.run(
        "bench.several:load",
        servers=process.bootstrap_servers,
        kind=kind,
        connections=connections,
        depth=depth,
        seconds=seconds,
    )
    return Sample((machine.cpu_seconds(process.pid) - before) * 1e6 / done["answers"])


def _idle(process: OttlaProcess) -> Sample:
    before = machine.cpu_seconds(process.pid)
    time.sleep(IDLE_SECONDS)
    return Sample((machine.cpu_seconds(process.pid) - before) * 1e3 / IDLE_SECONDS)

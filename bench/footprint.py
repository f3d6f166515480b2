"""What a broker costs before it does anything: start, memory, idle connections, partitions.

Each round takes a fresh broker process of each kind, so a broker that somebody else started is left out.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial

from bench import brokers as made
from bench import machine, wire
from bench.brokers import Broker
from bench.driver import call, connect
from bench.rounds import Plan, Row, Sample, measure
from ottla.client import ClientError, KafkaClient
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.headers import RequestHeader, encode_request_header

CONNECTIONS = 5_000
PARTITIONS = 2_000
TOPICS = 20
SETTLE_SECONDS = 1.5
START_SECONDS = 60.0
MIB = 1 << 20
SECTION = "Start and memory"
FIRST_TOPIC = "bench-start"


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """One life of a broker gives all figures of a round."""
    kinds = [broker.name for broker in brokers if broker.process is not None]
    lives: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}

    def live(kind: str) -> Sample:
        lives[kind].append(one_life(kind, int(CONNECTIONS * plan.scale), int(PARTITIONS * plan.scale)))
        return Sample(lives[kind][-1]["start"])

    measured = measure(Row(SECTION, "", "s"), {kind: partial(live, kind) for kind in kinds}, plan.rounds)
    connections, partitions = int(CONNECTIONS * plan.scale), int(PARTITIONS * plan.scale)
    figures = (
        ("start", "start to first acknowledged record", "s", 2),
        ("idle", "resident, idle", "MiB", 0),
        ("connected", f"resident, {connections:,} idle connections", "MiB", 0),
        ("connection", "an idle connection", "KiB", 1),
        ("partitions", f"resident, {partitions:,} partitions", "MiB", 0),
        ("reopen", f"clean stop to first record, {partitions:,} partitions", "s", 2),
    )
    for key, label, unit, digits in figures:
        row = Row(SECTION, label, unit, lower_is_better=True, digits=digits)
        row.notes = measured.notes if key == "start" else []
        row.samples = {k: [Sample(life[key]) for life in v] for k, v in lives.items() if v}
        yield row


def one_life(kind: str, connections: int, partitions: int) -> dict[str, float]:
    """Start, idle, be connected to, hold partitions, stop, start again."""
    broker = made.make(kind)
    assert broker.process is not None
    found: dict[str, float] = {}
    try:
        if kind == "kafka":  # its format step is not part of a start
            broker.process.start()
            broker.process.stop()
        found["start"] = start_to_first_record(broker)
        found["idle"] = settled_rss(broker) / MIB
        sockets = [connect(*broker.address) for _ in range(connections)]
        for sock in sockets:
            call(sock, api_versions_frame())
        connected = settled_rss(broker)
        found["connected"] = connected / MIB
        found["connection"] = (connected / MIB - found["idle"]) * 1024 / connections
        for sock in sockets:
            sock.close()
        for i in range(TOPICS):
            broker.create_topic(f"bench-many-{i}", partitions // TOPICS)
        found["partitions"] = settled_rss(broker) / MIB
        broker.process.stop()
        found["reopen"] = start_to_first_record(broker)
    finally:
        broker.process.stop()
        shutil.rmtree(broker.process.directory, ignore_errors=True)
    return found


def start_to_first_record(broker: Broker) -> float:
    """Seconds from the start of the process to an acknowledged record, for a client that keeps trying."""
    assert broker.process is not None
    problems: list[BaseException] = []

    def start() -> None:
        try:
            broker.process.start()  # type: ignore[union-attr]
        except RuntimeError as error:
            problems.append(error)

    starter = threading.Thread(target=start)
    begin = time.perf_counter()
    starter.start()
    frame = wire.produce_frame(FIRST_TOPIC, 0, wire.make_batch(100, 1, int(time.time() * 1000)))
    while True:
        try:
            with connect(*broker.address) as sock:
                _create(broker)
                while True:
                    try:
                        wire.check_produced(call(sock, frame))
                        break
                    except wire.RefusedError:
                        time.sleep(0.005)
            break
        except (OSError, ClientError) as error:
            if problems or time.perf_counter() - begin > START_SECONDS:
                raise RuntimeError(f"{broker.name} did not start: {(problems or [error])[0]}") from error
            time.sleep(0.005)
    took = time.perf_counter() - begin
    starter.join()
    return took


def settled_rss(broker: Broker) -> int:
    """Resident memory after a moment without work."""
    time.sleep(SETTLE_SECONDS)
    assert broker.pid is not None
    return machine.rss_bytes(broker.pid)


def api_versions_frame() -> bytes:
    """What every client sends first."""
    body = m.ApiVersionsRequest(client_software_name="bench", client_software_version="1").encode(3)
    header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 3, 1, "bench"))
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


def _create(broker: Broker) -> None:
    with KafkaClient(broker.bootstrap, "bench", timeout_s=10) as client:
        try:
            client.create_topic(FIRST_TOPIC, 1)
        except ClientError as error:
            if "exist" not in str(error):
                raise

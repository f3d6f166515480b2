"""Compaction: how fast one cleaner thread cleans a log, and what clients feel of it meanwhile.

Both sides get the same load into a compacted topic that is not due (min.cleanable.dirty.ratio=1). Then the
ratio is lowered, and the time runs until the cleaner's checkpoint names the topic. Each key is written about
five times over, at random, so that most batches are written anew with fewer records. Latency is that of
single produce requests to another topic, at a steady rate, idle and while a log is cleaned.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import brokers as made
from bench import job, wire
from bench.brokers import Broker
from bench.driver import call, connect, receive_answer
from bench.rounds import Plan, Row, Sample, cpu_of, measure
from ottla.client import KafkaClient
from protocol import messages as m
from protocol.records.batch import Record
from protocol.records.builder import build_batch, stamp_crc

TOPIC = "bench-compaction"
QUIET_TOPIC = "bench-compaction-quiet"
TOTAL_BYTES = 1 << 30
BATCH_BYTES = 16_384
SEGMENT_BYTES = 64 << 20
RECORD_SIZES = (1024, 100)
WRITES_PER_KEY = 5
RATE = 500
DEPTH = 8
LIMIT_SECONDS = 600.0
SECTION = "Compaction, one cleaner thread"
CHECKPOINT = "cleaner-offset-checkpoint"
OVERRIDES = {"log.cleaner.backoff.ms": "100", "log.cleaner.threads": "1"}


def fill(host: str, port: int, topic: str, record_bytes: int, amount: int) -> dict[str, float]:
    """Write `amount` bytes of batches with random keys; runs in a process of its own."""
    marks = [b"key-%010d" % (9_999_999_999 - i) for i in range(BATCH_BYTES // record_bytes)]
    now = int(time.time() * 1000)
    value = random.Random(7).randbytes(record_bytes + len(marks))
    rows = [Record(i, now + 3 * i, mark, value[i : i + record_bytes]) for i, mark in enumerate(marks)]
    while len(batch := build_batch(rows)) > BATCH_BYTES:
        rows.pop()
    places = [batch.index(row.key or b"") + 4 for row in rows]
    frame = wire.produce_frame(topic, 0, wire.Batch(bytes(batch), len(rows)))
    at = frame.index(bytes(batch))
    head, tail = frame[:at], frame[at + len(batch) :]
    keys = random.Random(11)
    distinct = amount // len(batch) * len(rows) // WRITES_PER_KEY
    sock = connect(host, port)
    sent = waiting = 0
    while sent < amount:
        for place in places:
            batch[place : place + 10] = b"%010d" % keys.randrange(distinct)
        stamp_crc(batch, 0, len(batch))
        sock.sendall(b"".join((head, batch, tail)))
        sent += len(batch)
        waiting += 1
        if waiting == DEPTH:
            wire.check_produced(receive_answer(sock))
            waiting -= 1
    for _ in range(waiting):
        wire.check_produced(receive_answer(sock))
    sock.close()
    return {"bytes": sent, "records": sent // len(batch) * len(rows), "keys": distinct}


def acks(host: str, port: int, seconds: float, checkpoint: str, topic: str) -> dict[str, float]:
    """Latency of produce requests in ms, for so long or until the checkpoint names the topic."""
    frame = wire.produce_frame(QUIET_TOPIC, 0, wire.make_batch(100, 1, int(time.time() * 1000)))
    sock = connect(host, port)
    wire.check_produced(call(sock, frame))
    late: list[float] = []
    begin = time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        if topic and len(late) % 50 == 0 and _clean_offset(Path(checkpoint), topic) is not None:
            break
        wait = len(late) / RATE - passed
        if wait > 0:
            time.sleep(wait)
        # Counted from when it was due: a stall meets all requests that should have been sent meanwhile.
        due = begin + len(late) / RATE
        call(sock, frame)
        late.append(time.perf_counter() - due)
    sock.close()
    late.sort()
    count = len(late)
    return {name: late[min(count - 1, int(count * q))] * 1e3 for name, q in (("p50", 0.5), ("p99", 0.99))}


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """Each side has brokers of its own, with a short rest of the cleaner between looks."""
    kinds = [broker.name for broker in brokers if broker.process is not None]
    sides = {kind: _start(kind) for kind in kinds}
    numbers = iter(range(1_000))
    try:
        for record_bytes in RECORD_SIZES:
            amount = int(TOTAL_BYTES * plan.scale) // (1 if record_bytes > 500 else 4)
            label = f"{amount / (1 << 20):,.0f} MiB of {record_bytes:,} B records"

            def run(broker: Broker, record_bytes: int, amount: int) -> Sample:
                return _clean_once(broker, f"{TOPIC}-{next(numbers)}", record_bytes, amount)

            runners = {
                kind: (lambda broker=broker, size=record_bytes, total=amount: run(broker, size, total))
                for kind, broker in sides.items()
            }
            yield measure(Row(SECTION, label, "MB/s", "CPU s/GB"), runners, plan.rounds)
        yield from _latency(sides, plan, numbers)
    finally:
        for broker in sides.values():
            broker.stop()


def _start(kind: str) -> Broker:
    broker = made.make(kind)
    assert broker.process is not None
    broker.process.overrides |= OVERRIDES
    broker.process.start()
    return broker


def _latency(sides: dict[str, Broker], plan: Plan, numbers: Iterator[int]) -> Iterator[Row]:
    section = f"Produce of one record, {RATE}/s, acks=1"
    idle: dict[str, list[dict[str, float]]] = {kind: [] for kind in sides}
    busy: dict[str, list[dict[str, float]]] = {kind: [] for kind in sides}
    for broker in sides.values():
        broker.create_topic(QUIET_TOPIC, 1)
        _acks(broker, plan.warm_up_seconds, "")
    for _ in range(plan.rounds):
        for kind, broker in sides.items():
            topic = f"{TOPIC}-{next(numbers)}"
            _fill(broker, topic, RECORD_SIZES[0], int(TOTAL_BYTES * plan.scale))
            time.sleep(1.0)  # what filling has left in the page cache begins to reach the disk
            idle[kind].append(_acks(broker, 5.0, ""))
            _make_due(broker, topic)
            busy[kind].append(_acks(broker, LIMIT_SECONDS, topic))
            broker.delete_topic(topic)
    for name in ("p50", "p99"):
        for label, results in (("idle", idle), ("while a log is cleaned", busy)):
            row = Row(section, f"{name} {label}", "ms", lower_is_better=True, digits=3)
            row.samples = {kind: [Sample(each[name]) for each in got] for kind, got in results.items()}
            yield row
    row = Row(section, "p99 while a log is cleaned, to idle", "x", lower_is_better=True, digits=2)
    row.samples = {
        kind: [Sample(b["p99"] / i["p99"]) for i, b in zip(idle[kind], busy[kind], strict=True)]
        for kind in sides
    }
    yield row


def _clean_once(broker: Broker, topic: str, record_bytes: int, amount: int) -> Sample:
    filled = _fill(broker, topic, record_bytes, amount)
    time.sleep(1.0)  # a log that is rolled is synced beside the appends, and cleaned as far as it is
    before = _segments(broker, topic)
    with _CpuOfTree(broker) as cpu:
        begin = time.perf_counter()
        _make_due(broker, topic)
        while (clean := _clean_offset(_checkpoint(broker), topic)) is None:
            if time.perf_counter() - begin > LIMIT_SECONDS:
                raise RuntimeError(f"{topic} was not cleaned within {LIMIT_SECONDS:g} s")
            time.sleep(0.005)
        took = time.perf_counter() - begin
    size, left = (sum(n for base, n in each if base < clean) for each in (before, _segments(broker, topic)))
    broker.delete_topic(topic)
    if not 0 < left <= size * 0.6:
        raise RuntimeError(f"{left} of {size} bytes were left, of {filled['keys']} keys")
    return Sample(size / took / 1e6, (per := cpu_of(0.0, cpu.seconds, size)) and per * 1e9)


class _CpuOfTree:
    """CPU time of a broker and its worker processes, which may come and go meanwhile."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._seen: dict[int, list[float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.seconds = 0.0

    def __enter__(self) -> _CpuOfTree:
        self._look(first=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()
        self.seconds = sum(last - first for first, last in self._seen.values())

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self._look()

    def _look(self, first: bool = False) -> None:
        pid = self._broker.pid
        if pid is None:
            return
        for each in [pid, *_children(pid)]:
            try:
                used = _cpu_seconds(each)
            except OSError:
                continue
            if each in self._seen:
                self._seen[each][1] = used
            else:
                self._seen[each] = [used if first else 0.0, used]


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _fill(broker: Broker, topic: str, record_bytes: int, amount: int) -> dict[str, float]:
    config = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "1.0",
        "segment.bytes": str(min(SEGMENT_BYTES, amount // 8)),
        "file.delete.delay.ms": "1000",
    }
    broker.create_topic(topic, 1, config)
    done = job.run(
        "bench.compaction:fill",
        host=broker.host, port=broker.port, topic=topic, record_bytes=record_bytes, amount=amount,
    )  # fmt: skip
    return {name: float(value) for name, value in done.items()}


def _acks(broker: Broker, seconds: float, topic: str) -> dict[str, float]:
    return job.run(
        "bench.compaction:acks",
        host=broker.host, port=broker.port, seconds=seconds, checkpoint=str(_checkpoint(broker)), topic=topic,
    )  # fmt: skip


def _make_due(broker: Broker, topic: str) -> None:
    entry = m.IncrementalAlterConfigsRequest.AlterableConfig(
        name="min.cleanable.dirty.ratio", config_operation=0, value="0.001"
    )
    resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=2, resource_name=topic, configs=[entry]
    )
    with KafkaClient(broker.bootstrap, "bench", timeout_s=60) as client:
        answer = client.call(m.IncrementalAlterConfigsRequest(resources=[resource]))
    if answer.responses[0].error_code:
        raise RuntimeError(f"the topic's settings were refused: {answer.responses[0].error_message}")


def _checkpoint(broker: Broker) -> Path:
    assert broker.process is not None
    return broker.process.log_dir / CHECKPOINT


def _clean_offset(path: Path, topic: str) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} ")), None)


def _segments(broker: Broker, topic: str) -> list[tuple[int, int]]:
    """Base offsets and sizes."""
    assert broker.process is not None
    files = (broker.process.log_dir / f"{topic}-0").glob("*.log")
    return [(int(path.stem), path.stat().st_size) for path in files]

"""The clients of the cluster part that load it; each public function runs in a process of its own."""

from __future__ import annotations

import time

from bench import wire
from bench.driver import Ring, call, connect, drive

ACKS_ALL = -1
PROBE_PAUSE_SECONDS = 0.005
FLUSH_SECONDS = 120


def bulk(
    bootstrap: str, topic: str, partitions: int, record_bytes: int, records: int, seconds: float = 0
) -> dict[str, float]:
    """librdkafka's idempotent producer with acks=all: so many records over the partitions in turn, or as many
    as it can in `seconds`, until all are acknowledged.
    """
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 100_000 if seconds else 1_000_000,
        }
    )
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})

    def stored() -> int:
        places = [TopicPartition(topic, index) for index in range(partitions)]
        return sum(reader.get_watermark_offsets(place, timeout=30)[1] for place in places)

    value = (b"0123456789abcdef" * (record_bytes // 16 + 1))[:record_bytes]
    before = stored()
    send, poll = producer.produce, producer.poll
    start, sent = time.perf_counter(), 0
    while sent < records or (seconds and time.perf_counter() - start < seconds):
        for _ in range(1000):
            while True:
                try:
                    send(topic, value, partition=sent % partitions)
                    break
                except BufferError:
                    poll(0.01)
            sent += 1
        poll(0)
    left = producer.flush(FLUSH_SECONDS)
    took = time.perf_counter() - start
    found = stored() - before
    reader.close()
    if left or found < sent:
        raise RuntimeError(f"{found} of {sent} records are stored, {left} were given up")
    return {"records": sent, "seconds": took, "client_cpu": time.process_time()}


def one_at_a_time(
    host: str, port: int, topic: str, record_bytes: int, records: int, seconds: float
) -> dict[str, float]:
    """One connection, one batch of so many records in flight, to partition 0, with acks=all."""
    batch = wire.make_batch(record_bytes, records, int(time.time() * 1000))
    frame = wire.produce_frame(topic, 0, batch, ACKS_ALL)
    totals = drive((host, port), [Ring([frame], 1)], 1, seconds, wire.check_produced)
    return {"batches": totals.answers, "seconds": totals.seconds}


def probe(host: str, port: int, topic: str, record_bytes: int, seconds: float) -> dict[str, float]:
    """One record with acks=all and one with acks=1 in turn, again and again: quantiles of both times in ms.

    acks=1 is answered when the leader has written, acks=all when all followers have, too.
    """
    batch = wire.make_batch(record_bytes, 1, int(time.time() * 1000))
    frames = {acks: wire.produce_frame(topic, 0, batch, acks) for acks in (ACKS_ALL, 1)}
    took: dict[int, list[float]] = {acks: [] for acks in frames}
    with connect(host, port) as sock:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for acks, frame in frames.items():
                start = time.perf_counter()
                wire.check_produced(call(sock, frame))
                took[acks].append((time.perf_counter() - start) * 1e3)
                time.sleep(PROBE_PAUSE_SECONDS)
    every, leader = sorted(took[ACKS_ALL]), sorted(took[1])
    return {
        "p50": _quantile(every, 0.5),
        "p99": _quantile(every, 0.99),
        "max": every[-1],
        "leader_p50": _quantile(leader, 0.5),
        "leader_p99": _quantile(leader, 0.99),
        "probes": len(every),
    }


def _quantile(values: list[float], q: float) -> float:
    return values[min(len(values) - 1, int(len(values) * q))]

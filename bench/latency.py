"""From send to seen: one producer and one long-polling consumer at a steady rate, in one process.

The time counts from just before the producer's send to just after the consumer's receive of the answer
that holds the record. Sending does not wait for acknowledgements, so a slow moment shows in the figures
of all records that were due in it.
"""

from __future__ import annotations

import select
import struct
import time
from collections.abc import Iterator, Sequence
from functools import partial

from bench import job, wire
from bench.brokers import Broker
from bench.driver import call, connect, receive_answer
from bench.rounds import Plan, Row, Sample, measure

TOPIC = "bench-latency"
RATES = (500, 5_000)
RECORD_BYTES = 100
QUANTILES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
_OFFSET_AND_LENGTH = struct.Struct(">qi")


def load(host: str, port: int, rate: int, seconds: float) -> dict[str, float]:
    """The client; runs in a process of its own. Results in milliseconds."""
    batch = wire.make_batch(RECORD_BYTES, 1, int(time.time() * 1000))
    frame = wire.produce_frame(TOPIC, 0, batch)
    producer, consumer = connect(host, port), connect(host, port)
    offset = wire.check_produced(call(producer, frame)) + 1
    first, sent, late = offset, list[float](), list[float]()
    consumer.sendall(wire.fetch_frame(TOPIC, 0, offset, 1 << 20))
    begin = time.perf_counter()
    count = int(rate * seconds)
    while len(late) < count:
        now = time.perf_counter()
        due = begin + len(sent) / rate
        if len(sent) < count and now >= due:
            sent.append(now)
            producer.sendall(frame)
            continue
        wait = due - now if len(sent) < count else 1.0
        ready, _, _ = select.select((consumer, producer), (), (), wait)  # to the microsecond, unlike epoll
        if consumer in ready:
            records = wire.check_fetched(receive_answer(consumer))
            now = time.perf_counter()
            at = 0
            while at + 12 <= len(records):
                offset, length = _OFFSET_AND_LENGTH.unpack_from(records, at)
                at += 12 + length
                if at <= len(records):
                    late.append(now - sent[offset - first])
                    offset += 1
            consumer.sendall(wire.fetch_frame(TOPIC, 0, first + len(late), 1 << 20))
        if producer in ready and not producer.recv(1 << 16):
            raise ConnectionError("the broker closed the connection")
        if now > begin + seconds + 30:
            raise RuntimeError(f"{len(late)} of {count} records were seen")
    late.sort()
    return {name: late[min(count - 1, int(count * q))] * 1e3 for name, q in QUANTILES}


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """All quantiles come from the same rounds."""
    for broker in brokers:
        broker.create_topic(TOPIC, 1)
        _load(broker, 2_000, plan.warm_up_seconds)
    for rate in RATES:
        section = f"Send to seen at {rate:,} records/s of 100 B"
        results: dict[str, list[dict[str, float]]] = {broker.name: [] for broker in brokers}

        def run(broker: Broker, rate: int, into: list[dict[str, float]]) -> Sample:
            into.append(_load(broker, rate, plan.seconds * 2))
            return Sample(into[-1]["p50"])

        runners = {b.name: partial(run, b, rate, results[b.name]) for b in brokers}
        measured = measure(Row(section, "p50", "ms"), runners, plan.rounds)
        for name, _ in QUANTILES:
            row = Row(section, name, "ms", lower_is_better=True, digits=3)
            row.notes = measured.notes if name == "p50" else []
            row.samples = {k: [Sample(done[name]) for done in v] for k, v in results.items() if v}
            yield row
    for broker in brokers:
        broker.delete_topic(TOPIC)


def _load(broker: Broker, rate: int, seconds: float) -> dict[str, float]:
    return job.run("bench.latency:load", host=broker.host, port=broker.port, rate=rate, seconds=seconds)

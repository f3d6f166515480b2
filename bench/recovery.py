"""A start on an unclean directory: the time until everything in it is served again.

Each side fills a directory of its own with the same load and loses the marker of its clean stop and its
recovery points, so that all of it has to be read. (A kill would do as much, but Kafka's controller then waits
9 s for the session of the broker that was, which says nothing about recovery.) The figure runs from the start
of the process until every partition gives its last batch. The same directory after a clean stop shows what of
it is the start alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from bench import brokers as made
from bench import bulk
from bench.brokers import Broker
from bench.offsets import end_offsets
from bench.rounds import Plan, Row, Sample, measure
from bench.starting import LOOK_AGAIN_S, start_until_served
from ottla.client import KafkaClient
from protocol import messages as m
from protocol.records.batch import batches, read_header

TOPIC = "bench-recovery"
TOTAL_BYTES = 4 << 30
RECORD_BYTES = 1_000  # so that 16 fit into a batch
BATCH_BYTES = 16_384
LIMIT_SECONDS = 300.0
SECTION = "Recovery"
_CHECKPOINT = "recovery-point-offset-checkpoint"
_MARKER = ".kafka_cleanshutdown"
_FETCH_VERSION = 12


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """Each side has the machine to itself: the brokers of the other parts idle meanwhile."""
    kinds = [broker.name for broker in brokers if broker.process is not None]
    amount = int(TOTAL_BYTES * plan.scale)
    size = f"{amount / (1 << 30):g} GiB"
    sides = {kind: made.make(kind) for kind in kinds}
    try:
        ends = {kind: _fill(broker, amount) for kind, broker in sides.items()}
        for label, prepare in (("unclean", _stop_uncleanly), ("clean", _stop)):
            row = Row(SECTION, f"start on {size}, {label}", "s", lower_is_better=True, digits=2)
            runners = {kind: _runner(broker, ends[kind], prepare) for kind, broker in sides.items()}
            yield measure(row, runners, plan.rounds)
    finally:
        for broker in sides.values():
            broker.stop()


def _fill(broker: Broker, amount: int) -> list[int]:
    """Write the load; the end offsets."""
    assert broker.process is not None
    broker.process.start()
    broker.create_topic(TOPIC, bulk.CONNECTIONS)
    bulk.produce_once(broker, TOPIC, RECORD_BYTES, BATCH_BYTES, amount)
    ends = end_offsets(*broker.address, TOPIC, bulk.CONNECTIONS)
    broker.process.stop()
    return ends


def _stop(broker: Broker) -> None:
    """Stop cleanly, after a start where the directory is unclean."""
    process = broker.process
    assert process is not None
    if process.process is None and not (process.log_dir / _MARKER).exists():
        process.start()
    process.stop()


def _stop_uncleanly(broker: Broker) -> None:
    assert broker.process is not None
    broker.process.stop()
    for name in (_MARKER, _CHECKPOINT):
        (broker.process.log_dir / name).unlink(missing_ok=True)


def _runner(broker: Broker, ends: list[int], prepare: Callable[[Broker], None]) -> Callable[[], Sample]:
    def run() -> Sample:
        prepare(broker)
        took = _start_to_served(broker, ends)
        prepare(broker)
        return Sample(took)

    return run


def _start_to_served(broker: Broker, ends: list[int]) -> float:
    def look(missing: list[tuple[int, int]]) -> None:
        with KafkaClient(broker.bootstrap, "bench", timeout_s=60) as client:
            while missing and _serves(client, *missing[-1]):
                missing.pop()
        if missing:
            time.sleep(LOOK_AGAIN_S)

    return start_until_served(broker, list(enumerate(ends)), look, LIMIT_SECONDS)


def _serves(client: KafkaClient, partition: int, end: int) -> bool:
    """Whether the last batch of the partition can be read. Raises RuntimeError for another end."""
    asked = m.FetchRequest.FetchPartition(
        partition=partition, fetch_offset=end - 1, partition_max_bytes=1 << 20
    )
    request = m.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        session_id=0,
        session_epoch=-1,
        topics=[m.FetchRequest.FetchTopic(topic=TOPIC, partitions=[asked])],
    )
    answer = client.call(request, version=_FETCH_VERSION)
    if answer.error_code or not answer.responses:
        return False
    [got] = answer.responses[0].partitions
    if got.error_code or not got.records:
        return False
    last = [read_header(got.records, at).last_offset for at, _ in batches(got.records)][-1]
    if last != end - 1:
        raise RuntimeError(f"partition {partition} ends at {last + 1} instead of {end}")
    return True

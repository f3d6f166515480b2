"""Idempotent producers with acks=all that go on whatever happens, and what they were promised.

with Load(cluster.bootstrap_servers, "t") as load:
    ...faults...
load.check(...)
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from protocol.errors import ErrorCode
from protocol.records.batch import read_header
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

RATE_PAUSE_S = 0.002
PATIENCE_S = 120  # a broker is out for some seconds, and longer on a busy machine


@dataclass(slots=True)
class Load:
    """One producer in a thread: values are numbers, one after the other, to partitions in turn.

    `acknowledged` maps (partition, offset) to the value; `failed` are values that were given up. `placeless`
    are acknowledged values whose offset librdkafka does not know. Two batches that the old leader wrote and
    left unanswered go to the next leader one after the other; the first comes before that leads and gets
    NOT_LEADER_OR_FOLLOWER, the second a moment later and is found there already. As sequences have no gap,
    librdkafka takes the first for acknowledged, too, and has no offset for it. No broker is to blame.
    """

    bootstrap_servers: str
    topic: str
    partitions: int = 3
    acknowledged: dict[tuple[int, int], int] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    placeless: set[int] = field(default_factory=set)
    longest_gap_s: float = 0.0
    sent: int = 0
    _last: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Load:
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "acks": "all",
                "enable.idempotence": True,
                "message.timeout.ms": PATIENCE_S * 1000,
                "socket.timeout.ms": 5_000,
                "retry.backoff.ms": 50,
                "reconnect.backoff.max.ms": 500,
                "linger.ms": 1,
                "log_level": 0,
            }
        )
        self._last = time.monotonic()
        while not self._stop.wait(RATE_PAUSE_S):
            value = self.sent
            producer.produce(
                self.topic,
                str(value).encode(),
                partition=value % self.partitions,
                on_delivery=lambda error, message, value=value: self._told(value, error, message),
            )
            self.sent += 1
            producer.poll(0)
        producer.flush(PATIENCE_S)

    def _told(self, value: int, error: KafkaError | None, message: Message) -> None:
        now = time.monotonic()
        if error is not None:
            self.failed[value] = str(error)
            return
        self.longest_gap_s = max(self.longest_gap_s, now - self._last)
        self._last = now
        if message.offset() is None:
            self.placeless.add(value)
        else:
            self.acknowledged[message.partition(), message.offset()] = value

    def acks(self) -> int:
        """How many records are acknowledged so far."""
        return len(self.acknowledged) + len(self.placeless)


def await_more(load: Load, count: int = 200) -> None:
    """Wait until so many more records are acknowledged."""
    wanted = load.acks() + count
    wait_until(lambda: load.acks() >= wanted, f"{count} more acknowledged records")


def read_all(bootstrap_servers: str, topic: str, partitions: int) -> dict[tuple[int, int], int]:
    """Everything that a consumer finds, value by (partition, offset)."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"reader-{topic}",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        found: dict[tuple[int, int], int] = {}
        at_end: set[int] = set()
        deadline = time.monotonic() + 60
        while len(at_end) < partitions:
            assert time.monotonic() < deadline, f"the end of {topic} was not reached"
            for message in consumer.consume(1000, 0.2):
                if message.error() is None:
                    at_end.discard(message.partition())
                    found[message.partition(), message.offset()] = int(message.value())
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
        return found
    finally:
        consumer.close()


def check(load: Load, bootstrap_servers: str) -> set[int]:
    """Nothing acknowledged is lost or moved, nothing is in another order, and nothing is there twice.

    Returns the values that are there again because librdkafka raised its epoch: three batches that the old
    leader left unanswered go to the next one, the first two come before that leads, the third is then out of
    sequence. librdkafka sends all of them under its next epoch, also what the old leader had written, and no
    broker can know it.
    """
    found = read_all(bootstrap_servers, load.topic, load.partitions)
    lost = {place: value for place, value in load.acknowledged.items() if found.get(place) != value}
    assert not lost, f"{len(lost)} of {len(load.acknowledged)} acknowledged records are not there: {lost}"
    times = Counter(found.values())
    assert load.placeless <= times.keys(), f"{sorted(load.placeless - times.keys())} are not there"
    again = {value for value, count in times.items() if count > 1}
    if again:
        check_epochs(bootstrap_servers, load.topic, {p: v for p, v in found.items() if v in again})
    for index in range(load.partitions):
        in_order = list(dict.fromkeys(value for place, value in sorted(found.items()) if place[0] == index))
        assert in_order == sorted(in_order), f"partition {index} is not in the order of its sending"
    assert len(load.acknowledged) + len(load.placeless) + len(load.failed) == load.sent
    return again


def check_epochs(bootstrap_servers: str, topic: str, found: Mapping[tuple[int, int], int]) -> None:
    """Values (by place) that are there several times have a higher producer epoch each time."""
    epochs: dict[int, list[int]] = {}
    for (index, offset), value in sorted(found.items()):
        epochs.setdefault(value, []).append(epoch_of(bootstrap_servers, topic, index, offset))
    twice = {value: seen for value, seen in epochs.items() if seen != sorted(set(seen))}
    assert not twice, f"values that are there twice, with their producer's epochs: {twice}"


def epoch_of(bootstrap_servers: str, topic: str, index: int, offset: int) -> int:
    """Of the producer that wrote the record, as the partition's leader has it."""
    for server in bootstrap_servers.split(","):
        with WireClient(server) as wire:
            answer = wire.fetch(topic, offset, index)
        if answer.error_code == ErrorCode.NONE:
            return read_header(bytes(answer.records or b""), 0).producer_epoch
    raise AssertionError(f"{topic}-{index} has no leader")

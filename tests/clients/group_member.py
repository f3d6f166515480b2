"""One consumer in a group, as a process: `python -m tests.clients.group_member '{"library": ...}'`.

It tells on its standard output what happens, a line each: `assigned 0 1`, `record PARTITION OFFSET VALUE` for
each record when it has been dealt with, `committed` after each batch, `refused ERROR` where that was not
accepted, `holding` where it was told to stop in the middle of one. SIGTERM has it leave.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

TOPIC = "orders"
SESSION_MS, HEARTBEAT_MS, POLL_MS = 10_000, 300, 100
# kafka-python 3.0 may stop its heartbeats for good when a poll ends while it joins, on Apache Kafka as here.
PATIENT_POLL_MS = 1000
Record = tuple[int, int, bytes]
Holds = Callable[[], None]


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


class Teller:
    """What is the same for every library: `batch` deals with records, `look` tells of a new assignment."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.hold_at: int | None = options.get("hold_at")
        self.session_ms = options.get("session_ms", SESSION_MS)
        self._assigned: list[int] | None = None
        self._dealt_with = 0
        self.over = False
        self.owes = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.over = True

    def committed(self) -> None:
        self.owes = False
        say("committed")

    def refused(self, error: str) -> None:
        """A commit was; it is tried again after the next poll, when the member has rejoined."""
        self.owes = True
        say("refused", error)

    def look(self, partitions: Iterable[int]) -> None:
        assigned = sorted(partitions)
        if assigned != self._assigned:
            self._assigned = assigned
            say("assigned", *assigned)

    def batch(self, records: Iterable[Record]) -> None:
        for partition, offset, value in records:
            if self._dealt_with == self.hold_at:
                say("holding")
                threading.Event().wait()
            say("record", partition, offset, value.decode())
            self._dealt_with += 1


def with_kafka_python(options: dict[str, Any], teller: Teller) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import KafkaConnectionError, KafkaError

    known = (
        CooperativeStickyAssignor, RangePartitionAssignor, RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
    )  # fmt: skip
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=options["servers"],
        group_id=options["group"],
        group_instance_id=options["instance"],
        partition_assignment_strategy=[each for each in known if each.name == options["strategy"]],
        session_timeout_ms=teller.session_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    while not teller.over:
        try:
            found = consumer.poll(timeout_ms=PATIENT_POLL_MS)
        except KafkaConnectionError:  # it lets this one through to its user while a broker is away
            continue
        teller.look(place.partition for place in consumer.assignment())
        teller.batch((r.partition, r.offset, r.value) for records in found.values() for r in records)
        if found or teller.owes:
            try:
                consumer.commit()
            except KafkaError as error:
                teller.refused(type(error).__name__)
            else:
                teller.committed()
    consumer.close()


def with_aiokafka(options: dict[str, Any], teller: Teller) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import KafkaError

    known = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=options["servers"],
            group_id=options["group"],
            group_instance_id=options["instance"],
            partition_assignment_strategy=[each for each in known if each.name == options["strategy"]],
            session_timeout_ms=teller.session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        while not teller.over:
            found = await consumer.getmany(timeout_ms=POLL_MS)
            teller.look(place.partition for place in consumer.assignment())
            teller.batch((r.partition, r.offset, r.value) for records in found.values() for r in records)
            if found or teller.owes:
                try:
                    await consumer.commit()
                except KafkaError as error:
                    teller.refused(type(error).__name__)
                else:
                    teller.committed()
        await consumer.stop()

    asyncio.run(run())


def with_confluent_kafka(options: dict[str, Any], teller: Teller) -> None:
    from confluent_kafka import Consumer, KafkaError, KafkaException

    settings = {
        "bootstrap.servers": options["servers"],
        "group.id": options["group"],
        "partition.assignment.strategy": options["strategy"],
        "session.timeout.ms": teller.session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    if options["instance"] is not None:
        settings["group.instance.id"] = options["instance"]
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    while not teller.over:
        found = [each for each in consumer.consume(100, POLL_MS / 1000) if each.error() is None]
        teller.look(place.partition for place in consumer.assignment())
        teller.batch((each.partition(), each.offset(), each.value()) for each in found)
        if found or teller.owes:
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() == KafkaError._NO_OFFSET:
                    teller.owes = False  # what it had read is another member's now
                else:
                    teller.refused(error.args[0].name())
            else:
                teller.committed()
    consumer.close()


LIBRARIES = {
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
    "confluent-kafka": with_confluent_kafka,
}

if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    chosen = json.loads(sys.argv[1])
    LIBRARIES[chosen["library"]](chosen, Teller(chosen))

"""librdkafka's consumer with `group.protocol=consumer` (KIP-848): members come and go, the broker is started
anew, groups change from the classic protocol and back while they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from protocol import messages as m
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

PARTITIONS = 8
TOPIC = "orders"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
# What a commit is answered while the group moves or its coordinator does: it is tried again.
MOVING = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
    KafkaError._WAIT_COORD,
    KafkaError._TRANSPORT,
}


class Readers:
    """Consumers that are polled in turn, and all that they have read."""

    def __init__(self, broker: OttlaProcess) -> None:
        self.broker = broker
        self.open: list[Consumer] = []
        self.owing: set[Consumer] = set()
        self.read: list[bytes] = []
        self.produced: list[bytes] = []
        self.producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    def start(self, *topics: str, **settings: Any) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": "g",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        consumer.subscribe(list(topics or (TOPIC,)))
        self.open.append(consumer)
        return consumer

    def stop(self, consumer: Consumer) -> None:
        self.open.remove(consumer)
        self.owing.discard(consumer)
        consumer.close()

    def produce(self, count: int = PARTITIONS) -> None:
        for _ in range(count):
            value = b"%d" % len(self.produced)
            self.producer.produce(TOPIC, value, partition=len(self.produced) % PARTITIONS)
            self.produced.append(value)
        self.producer.flush()

    def turn(self) -> None:
        """Let every consumer read what there is, and commit it."""
        for consumer in self.open:
            got = consumer.consume(100, 0.02)
            for record in got:
                assert record.error() is None, record.error()
                self.read.append(record.value())
            if got or consumer in self.owing:
                self.commit(consumer)

    def commit(self, consumer: Consumer) -> None:
        """Commit what it has read; what is refused as the group moves is owed until the next turn."""
        self.owing.discard(consumer)
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            code = error.args[0].code()
            if code in MOVING:
                self.owing.add(consumer)
            elif code != KafkaError._NO_OFFSET:  # what it had read is another member's now
                raise

    def until(self, condition: Callable[[], object], what: str) -> None:
        def met() -> bool:
            self.turn()
            return bool(condition())

        wait_until(met, what)

    def shares(self) -> list[int]:
        return sorted(len(consumer.assignment()) for consumer in self.open)

    def shared(self) -> bool:
        """Whether each has its equal part, and no partition two readers."""
        parts = [part.partition for consumer in self.open for part in consumer.assignment()]
        return self.shares() == [PARTITIONS // len(self.open)] * len(self.open) and (
            sorted(parts) == list(range(PARTITIONS))
        )

    def all_read(self) -> bool:
        return set(self.read) == set(self.produced)


@pytest.fixture
def broker() -> Iterator[OttlaProcess]:
    with OttlaProcess(SETTINGS) as process:
        with WireClient(process.bootstrap_servers) as wire:
            wire.create_topic(TOPIC, PARTITIONS)
        yield process


@pytest.fixture
def readers(broker: OttlaProcess) -> Iterator[Readers]:
    readers = Readers(broker)
    with ExitStack() as closing:
        closing.callback(lambda: [consumer.close() for consumer in readers.open])
        yield readers


def group_type(broker: OttlaProcess) -> str:
    with WireClient(broker.bootstrap_servers) as wire:
        [group] = wire.send(m.ListGroupsRequest(), 5).groups
        return str(group.group_type)


def test_from_one_to_eight_members_and_back_nothing_is_lost_or_stalls(readers: Readers) -> None:
    for count in (1, 2, 4, 8):
        while len(readers.open) < count:
            readers.start()
        readers.produce()
        readers.until(readers.shared, f"{count} members to share the partitions")
    while len(readers.open) > 1:
        readers.stop(readers.open[-1])
        readers.produce()
    readers.until(readers.shared, "the last member to have everything")
    readers.until(readers.all_read, "all records to be read")
    [last] = readers.open
    wanted = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    ends = [last.get_watermark_offsets(part, timeout=60)[1] for part in wanted]

    def committed() -> list[int]:
        return [part.offset for part in last.committed(wanted, timeout=60)]

    readers.until(lambda: committed() == ends, "all that was read to be committed")


def test_a_group_goes_on_when_its_broker_is_started_anew(readers: Readers, broker: OttlaProcess) -> None:
    readers.start()
    readers.start()
    readers.produce()
    readers.until(readers.shared, "both to share the partitions")
    readers.until(readers.all_read, "all records to be read")
    broker.stop()
    broker.start()
    readers.produce()
    readers.until(readers.all_read, "all records to be read")
    assert readers.shared()


def test_a_regular_expression_follows_new_topics(readers: Readers, broker: OttlaProcess) -> None:
    consumer = readers.start("^ord.*", "^other")  # librdkafka joins them into one
    readers.produce()
    readers.until(readers.all_read, "all records to be read")
    with WireClient(broker.bootstrap_servers) as wire:
        wire.create_topic("ordinary", 1)
        wire.create_topic("disorder", 1)

    def topics() -> set[str]:
        return {part.topic for part in consumer.assignment()}

    readers.until(lambda: topics() == {TOPIC, "ordinary"}, "the new topic")


def test_a_static_member_that_restarts_gets_what_it_had(readers: Readers) -> None:
    first = readers.start(group_instance_id="one")
    readers.start(group_instance_id="two")
    readers.until(readers.shared, "both to share the partitions")
    had = sorted(part.partition for part in first.assignment())
    readers.stop(first)
    again = readers.start(group_instance_id="one")
    readers.until(readers.shared, "both to share the partitions again")
    assert sorted(part.partition for part in again.assignment()) == had


@pytest.mark.parametrize("strategy", ["roundrobin", "range"])
def test_a_group_changes_its_protocol_while_it_is_read(
    readers: Readers, broker: OttlaProcess, strategy: str
) -> None:
    """A rolling restart from the classic to the consumer protocol, and back.

    Not with cooperative-sticky: after a second rebalance librdkafka's leader puts user data into its
    assignments, and such a group Kafka does not convert either.
    """
    classic = {
        "group_protocol": "classic",
        "partition_assignment_strategy": strategy,
        "heartbeat_interval_ms": 500,
    }
    old = [readers.start(**classic) for _ in range(2)]
    readers.produce()
    readers.until(readers.shared, "the classic members to share the partitions")
    assert group_type(broker) == "classic"
    for consumer in old:
        readers.stop(consumer)
        readers.start()
        readers.produce()
        readers.until(readers.shared, "old and new to share the partitions")
        assert group_type(broker) == "consumer"
    readers.until(readers.all_read, "all records to be read")
    for consumer in list(readers.open):
        readers.start(**classic)
        readers.stop(consumer)
        readers.produce()
        readers.until(readers.shared, "new and old to share the partitions")
    assert group_type(broker) == "classic"
    readers.until(readers.all_read, "all records to be read")

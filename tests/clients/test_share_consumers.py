"""Share consumers on our broker: librdkafka's, and Kafka's console consumer and tool for share groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

from protocol import messages as m
from tests.support.group_member import await_coordinator
from tests.support.kafka_process import run_tool
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

TOPIC = "orders"
GROUP = "workers"
PARTITIONS = 3
SETTINGS = {
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
}
GROUP_TOOL = "consumer.group.ShareGroupCommand"

New = Callable[..., ShareConsumer]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OttlaProcess]:
    """With a topic, and a share group that begins at its start."""
    with OttlaProcess(SETTINGS, directory=tmp_path) as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            wire.create_topic(TOPIC, PARTITIONS)
            await_coordinator(wire, GROUP)
            from_the_start(wire)
        yield broker


def from_the_start(wire: WireClient) -> None:
    request = m.AlterShareGroupOffsetsRequest
    partitions = [
        request.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=0)
        for index in range(PARTITIONS)
    ]
    topic = request.AlterShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=partitions)
    answer = wire.send(request(group_id=GROUP, topics=[topic]), 0)
    assert answer.error_code == 0, answer


def produce(broker: OttlaProcess, first: int, last: int) -> list[bytes]:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    values = [b"%d" % each for each in range(first, last)]
    for number, value in enumerate(values):
        producer.produce(TOPIC, value, partition=number % PARTITIONS)
    assert producer.flush(60) == 0
    return values


@pytest.fixture
def new(broker: OttlaProcess) -> Iterator[New]:
    """Makes subscribed share consumers."""
    with ExitStack() as opened:

        def start(mode: str = "implicit") -> ShareConsumer:
            consumer = ShareConsumer(
                {
                    "bootstrap.servers": broker.bootstrap_servers,
                    "group.id": GROUP,
                    "share.acknowledgement.mode": mode,
                }
            )
            opened.callback(consumer.close)
            consumer.subscribe([TOPIC])
            return consumer

        yield start


def polled(consumer: ShareConsumer) -> list[Any]:
    found = list(consumer.poll(0.2))
    assert [each.error() for each in found] == [None] * len(found)
    return found


def test_everything_is_read_once(broker: OttlaProcess, new: New) -> None:
    values = produce(broker, 0, 300)
    consumer = new()
    read: list[bytes] = []

    def done() -> bool:
        read.extend(each.value() for each in polled(consumer))
        return len(read) >= len(values)

    wait_until(done, "all records")
    assert Counter(read) == Counter(values)
    assert set(consumer.commit_sync().values()) <= {None}
    assert polled(consumer) == []
    await_no_lag(broker)


def await_no_lag(broker: OttlaProcess) -> None:
    """Until all that was said of records is written: a commit does not wait for what went with fetches."""
    wait_until(lambda: lags(broker) == dict.fromkeys(range(PARTITIONS), 0), "all records to be done with")


def lags(broker: OttlaProcess) -> dict[int, int]:
    """How many records of each partition are not done with."""
    request = m.DescribeShareGroupOffsetsRequest
    group = request.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    with WireClient(broker.bootstrap_servers) as wire:
        [found] = wire.send(request(groups=[group]), 1).groups
    return {row.partition_index: row.lag for topic in found.topics for row in topic.partitions}


def test_consumers_share_the_records(broker: OttlaProcess, new: New) -> None:
    consumers = [new() for _ in range(5)]  # more than there are partitions
    read: list[list[bytes]] = [[] for _ in consumers]
    for consumer in consumers:
        polled(consumer)
    rounds = iter(range(0, 100_000, 30))
    values: list[bytes] = []

    def all_have_some() -> bool:
        first = next(rounds)
        values.extend(produce(broker, first, first + 30))
        for consumer, mine in zip(consumers, read, strict=True):
            mine.extend(each.value() for each in polled(consumer))
        return all(read)

    wait_until(all_have_some, "records for everybody")

    def done() -> bool:
        for consumer, mine in zip(consumers, read, strict=True):
            mine.extend(each.value() for each in polled(consumer))
        return sum(map(len, read)) >= len(values)

    wait_until(done, "all records")
    assert Counter(value for mine in read for value in mine) == Counter(values)


def test_what_is_said_of_records_counts(broker: OttlaProcess, new: New) -> None:
    values = produce(broker, 0, 9)
    consumer = new("explicit")
    seen: Counter[bytes] = Counter()
    verdicts = {b"1": AcknowledgeType.RELEASE, b"2": AcknowledgeType.REJECT}

    def done() -> bool:
        for each in polled(consumer):
            seen[each.value()] += 1
            first_time = seen[each.value()] == 1
            verdict = verdicts.get(each.value()) if first_time else None
            consumer.acknowledge(each, AcknowledgeType.ACCEPT if verdict is None else verdict)
        return len(seen) == len(values) and seen[b"1"] == 2

    wait_until(done, "the released record again")
    assert set(consumer.commit_sync().values()) <= {None}
    assert polled(consumer) == []
    assert seen == Counter(values) + Counter([b"1"])


def test_what_a_consumer_holds_goes_to_others_when_it_leaves(broker: OttlaProcess, new: New) -> None:
    values = produce(broker, 0, 30)
    first = new("explicit")
    held: list[bytes] = []

    def holds() -> bool:
        for each in polled(first):
            held.append(each.value())
            first.acknowledge(each, AcknowledgeType.RELEASE)
        return bool(held)

    wait_until(holds, "records for the first")
    first.close()
    second = new()
    read: list[bytes] = []

    def done() -> bool:
        read.extend(each.value() for each in polled(second))
        return len(set(read)) == len(values)

    wait_until(done, "all records for the second")
    assert Counter(read) == Counter(values)


def test_a_broker_that_starts_anew_keeps_the_group(broker: OttlaProcess, new: New) -> None:
    values = produce(broker, 0, 30)
    consumer = new()
    read: list[bytes] = []

    def done() -> bool:
        read.extend(each.value() for each in polled(consumer))
        return len(read) >= len(values)

    wait_until(done, "all records")
    consumer.commit_sync()
    await_no_lag(broker)
    broker.kill()
    broker.start()
    values += produce(broker, 30, 60)
    wait_until(done, "the records after the start")
    assert Counter(read) == Counter(values)


def tool(broker: OttlaProcess, *arguments: str) -> str:
    done = run_tool(GROUP_TOOL, "--bootstrap-server", broker.bootstrap_servers, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stdout, done.stdout
    return done.stdout


@pytest.mark.kafka
def test_kafkas_console_consumer_and_tool(broker: OttlaProcess) -> None:
    produce(broker, 0, 30)
    read = run_tool(
        "consumer.ConsoleShareConsumer", "--bootstrap-server", broker.bootstrap_servers,
        "--topic", TOPIC, "--group", GROUP, "--max-messages", "30", "--timeout-ms", "60000",
    )  # fmt: skip
    assert read.returncode == 0, read.stdout + read.stderr
    assert sorted(map(int, read.stdout.split())) == list(range(30))

    def rows() -> dict[int, tuple[str, str]]:
        """Start offset and lag of each partition."""
        shown = [line.split() for line in tool(broker, "--describe", "--group", GROUP).splitlines()]
        return {int(row[2]): (row[3], row[4]) for row in shown if row[:2] == [GROUP, TOPIC]}

    wait_until(lambda: {lag for _, lag in rows().values()} == {"0"}, "all records to be done with")
    assert tool(broker, "--list").split() == [GROUP]
    state = tool(broker, "--describe", "--group", GROUP, "--state")
    assert re.search(rf"^{GROUP} .*\bEmpty\b", state, re.M), state
    reset = ("--group", GROUP, "--topic", TOPIC, "--reset-offsets", "--to-earliest", "--execute")
    tool(broker, *reset)
    assert rows() == dict.fromkeys(range(PARTITIONS), ("0", "10"))
    tool(broker, "--delete-offsets", "--group", GROUP, "--topic", TOPIC)
    assert rows() == {}
    assert "successful" in tool(broker, "--delete", "--group", GROUP)
    assert GROUP not in tool(broker, "--list").split()

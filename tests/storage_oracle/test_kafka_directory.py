"""The data directory of an Apache Kafka broker, taken over by ours as it is, and given back.

No metadata store of ours is in it: cluster, node, topics and groups have to come from Kafka's files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from protocol import messages as m
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.transactions import await_markers
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.kafka

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
TOPICS = {"orders": 2, "a.b-c_1": 1, "moved-on": 3}
GROUP = "readers"

Either = KafkaProcess | OttlaProcess
Row = tuple[int, int, bytes | None, bytes | None]


@pytest.fixture
def kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaProcess]:
    """By version; "3.9.2 ZooKeeper" is one with a ZooKeeper of its own."""
    version, _, store = request.param.partition(" ")
    with ExitStack() as stack:
        settings = dict(SETTINGS)
        if store:
            zookeeper = stack.enter_context(ZookeeperProcess())
            settings["zookeeper.connect"] = f"{zookeeper.address}/kafka"
        yield stack.enter_context(KafkaProcess(version, settings, tmp_path))


def fill(broker: Either, first: int) -> None:
    """Idempotent records in batches of all codecs."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5}
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({**settings, "compression.type": codec, "enable.idempotence": True})
        for topic, partitions in TOPICS.items():
            for number in range(first, first + 60):
                producer.produce(
                    topic, b"%s %d" % (codec.encode(), number), b"%d" % number, number % partitions
                )
        assert producer.flush(60) == 0


def transactions(broker: KafkaProcess) -> None:
    """Three, the second of which is aborted."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx"})
    producer.init_transactions(60)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number in range(20):
            producer.produce("orders", b"in a transaction %d" % number, partition=0)
        producer.flush(60)
        end(60)
    # 150 records that are not of transactions, three times twenty and a marker
    await_markers(broker.bootstrap_servers, "orders", 150 + 3 * 21)


def commit(broker: Either, offset: int) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": GROUP}
    consumer = Consumer(settings)
    place = TopicPartition("orders", 1, offset, metadata="so far")
    wait_until(lambda: succeeds(lambda: consumer.commit(offsets=[place], asynchronous=False)), "a commit")
    consumer.close()


def succeeds(call) -> bool:  # type: ignore[no-untyped-def]
    """Whether it did; what may pass is no failure of the test."""
    try:
        call()
    except KafkaException as error:
        if not error.args[0].retriable() and error.args[0].name() not in ("_TIMED_OUT", "NOT_COORDINATOR"):
            raise
        return False
    return True


def committed(broker: Either) -> tuple[int, str]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": GROUP})
    found: list[TopicPartition] = []
    asked = [TopicPartition("orders", 1)]
    wait_until(lambda: succeeds(lambda: found.extend(consumer.committed(asked, 10))), "offsets")
    consumer.close()
    return found[0].offset, found[0].metadata or ""


def read(broker: Either, isolation: str) -> dict[tuple[str, int], list[Row]]:
    """Everything in all partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "none",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    found: dict[tuple[str, int], list[Row]] = {
        (topic, partition): [] for topic, partitions in TOPICS.items() for partition in range(partitions)
    }
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in found])
    unfinished = set(found)
    while unfinished:
        message = consumer.poll(60)
        assert message is not None
        place = (message.topic(), message.partition())
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            unfinished.discard(place)
        else:
            row = (message.offset(), message.timestamp()[1], message.key(), message.value())
            found[place].append(row)
    consumer.close()
    return found


def everything(broker: Either) -> dict[tuple[str, int, str], list[Row]]:
    return {
        (*place, isolation): rows
        for isolation in ("read_uncommitted", "read_committed")
        for place, rows in read(broker, isolation).items()
    }


def identity(broker: Either) -> tuple[str, int, dict[str, tuple[bytes, int]]]:
    """Cluster id, node id, and of each topic the id and the number of partitions."""
    with WireClient(broker.bootstrap_servers) as wire:
        told = wire.metadata(*TOPICS, "__consumer_offsets")
    topics = {topic.name: (bytes(topic.topic_id), len(topic.partitions)) for topic in told.topics}
    return told.cluster_id, told.brokers[0].node_id, topics


def leads(broker: Either) -> None:
    with WireClient(broker.bootstrap_servers) as wire:

        def ready() -> bool:
            """Kafka with a ZooKeeper leads partitions a moment before Metadata tells of them."""
            errors = [
                wire.list_offset(topic, -1, partition).error_code
                for topic, partitions in TOPICS.items()
                for partition in range(partitions)
            ]
            errors += [topic.error_code for topic in wire.metadata(*TOPICS, "__consumer_offsets").topics]
            return not any(errors)

        wait_until(ready, "all partitions to have leaders")


def files_below(directory: Path) -> dict[str, bytes]:
    """None of a directory that is not there, as in ZooKeeper mode."""
    return {path.name: path.read_bytes() for path in sorted(directory.glob("*"))}


def add_partition(wire: WireClient, topic: str, count: int) -> None:
    """Have the topic `count` partitions, and wait for the last one's leader."""
    more = m.CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=count, assignments=None)
    [done] = wire.send(m.CreatePartitionsRequest(topics=[more], timeout_ms=30_000), 3).results
    assert done.error_code == 0, done
    wait_until(lambda: not wire.list_offset(topic, -1, count - 1).error_code, "the new partition")


@pytest.mark.parametrize(
    ("kafka", "ending"),
    [("4.4.0", "stopped"), ("3.9.2", "killed"), ("3.9.2 ZooKeeper", "stopped")],
    indirect=["kafka"],
)
def test_a_directory_of_kafka_is_taken_over_and_given_back(kafka: KafkaProcess, ending: str) -> None:
    with WireClient(kafka.bootstrap_servers) as wire:
        for topic, partitions in TOPICS.items():
            wire.create_topic(topic, partitions, segment_bytes="1048576")
    fill(kafka, 0)
    transactions(kafka)
    commit(kafka, 17)
    before, seen = identity(kafka), everything(kafka)
    if ending == "stopped":
        kafka.stop()
    else:
        kafka.kill()
    metadata_log = files_below(kafka.log_dir / "__cluster_metadata-0")

    with OttlaProcess(directory=kafka.directory) as ottla:
        assert identity(ottla) == before
        assert everything(ottla) == seen
        assert committed(ottla) == (17, "so far")
        fill(ottla, 60)
        commit(ottla, 23)
        written = everything(ottla)
        assert identity(ottla) == before
        assert ottla.stop() == 0
    assert files_below(kafka.log_dir / "__cluster_metadata-0") == metadata_log
    assert {key: rows[: len(seen[key])] for key, rows in written.items()} == seen

    kafka.start()
    leads(kafka)
    assert identity(kafka) == before
    assert everything(kafka) == written
    assert committed(kafka) == (23, "so far")
    fill(kafka, 120)
    with WireClient(kafka.bootstrap_servers) as wire:
        made_meanwhile = wire.create_topic("made-meanwhile")
        wire.produce_values("made-meanwhile", b"one", b"two")
        add_partition(wire, "a.b-c_1", 2)
        wire.produce_values("a.b-c_1", b"in a new partition", partition=1)
    kafka.stop()
    assert not [path.name for path in kafka.log_dir.iterdir() if path.name.endswith("-stray")]

    with OttlaProcess(directory=kafka.directory) as ottla:
        before[2]["a.b-c_1"] = (before[2]["a.b-c_1"][0], 2)
        assert identity(ottla) == before
        again = everything(ottla)
        with WireClient(ottla.bootstrap_servers) as wire:
            assert bytes(wire.metadata("made-meanwhile").topics[0].topic_id) == made_meanwhile
            assert len(wire.stored_batches("made-meanwhile")) == 1
            assert len(wire.stored_batches("a.b-c_1", 1)) == 1
    assert all(len(again[key]) > len(rows) for key, rows in written.items())
    assert {key: rows[: len(written[key])] for key, rows in again.items()} == written

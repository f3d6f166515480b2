"""A log directory goes from Apache Kafka to us, back, and to us again; nobody repairs or loses anything."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from protocol.uuids import ZERO_UUID
from runtime.entropy import SeededRandom
from runtime.os_files import OsFileSystem
from storage.log_dirs import read_meta
from storage.log_manager import LogManager
from tests.storage_oracle.filled import CONFIG, fill
from tests.support.kafka_process import KafkaProcess, run_tool
from tests.support.logs import START_MS, FixedClock, batch, checked, read_records
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka
TOPIC = "shared.topic-1"

Row: TypeAlias = tuple[int, int, bytes | None, bytes | None]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaProcess]:
    with KafkaProcess(directory=tmp_path) as running:
        yield running


def produce(broker: KafkaProcess, first: int, count: int, codec: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "compression.type": codec}
    producer = Producer({**settings, "enable.idempotence": True, "linger.ms": 5})
    for number in range(first, first + count):
        producer.produce(TOPIC, b"value %d" % number, b"%d" % number, partition=0)
    assert producer.flush(60) == 0


NOT_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART)
"""What librdkafka leaves to those who look up offsets; it asks again by itself in everything else."""


def end_offset(consumer: Consumer) -> int:
    """Asked again while Kafka, just started, does not lead its partitions yet."""
    ends: list[int] = []

    def known() -> bool:
        try:
            ends.append(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60)[1])
        except KafkaException as error:
            if not (error.args[0].retriable() or error.args[0].code() in NOT_YET):
                raise
        return bool(ends)

    wait_until(known, "Kafka to lead its partition")
    return ends[0]


def consume(broker: KafkaProcess) -> list[Row]:
    """Offset, timestamp, key and value of everything in partition 0."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "none", "enable.auto.commit": False}
    )
    end = end_offset(consumer)
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    found: list[Row] = []
    while not found or found[-1][0] < end - 1:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        found.append((message.offset(), message.timestamp()[1], message.key(), message.value()))
    consumer.close()
    return found


def ours(broker: KafkaProcess) -> LogManager:
    files, path = OsFileSystem(), str(broker.log_dir)
    meta = read_meta(files, f"{path}/meta.properties")
    assert meta is not None
    manager = LogManager(files, FixedClock(), SeededRandom(b"k"), [path], lambda topic: CONFIG)
    manager.open(meta.cluster_id, meta.node_id)
    manager.load()
    assert not manager.unclean
    return manager


def test_a_directory_changes_hands(broker: KafkaProcess) -> None:
    options = ("--create", "--topic", TOPIC, "--partitions", "2", "--config", "segment.bytes=1048576")
    created = run_tool("TopicCommand", "--bootstrap-server", broker.bootstrap_servers, *options)
    assert created.returncode == 0, created.stderr
    produce(broker, 0, 300, "zstd")
    seen_by_kafka = consume(broker)
    broker.stop()

    manager = ours(broker)
    log = manager.get(TOPIC, 0)
    assert log is not None
    assert log.topic_id != ZERO_UUID
    assert log.end_offset == log.high_watermark == 300
    assert [(r.offset, r.timestamp, r.key, r.value) for r in read_records(log)] == seen_by_kafka
    assert len(log.producers.entries) == 1
    fill(log)
    now_ms = time.time_ns() // 1_000_000  # Kafka forgets producers that are older than a day
    log.append_as_leader(checked(batch(2, producer=77, epoch=3, sequence=0, ts=now_ms)), 9, now_ms)
    log.write_pending()
    log.set_high_watermark(log.end_offset)
    written = [(r.offset, r.timestamp, r.key, r.value) for r in read_records(log)]
    manager.close()
    partition = broker.log_dir / f"{TOPIC}-0"
    before = {
        p.name: p.read_bytes()
        for p in sorted(partition.iterdir())
        if p.suffix in (".log", ".index", ".timeindex")
    }

    broker.start()
    assert consume(broker) == written
    for name, data in list(before.items())[:-3]:  # but for those of the active segment
        assert (partition / name).read_bytes().startswith(data), name
    produce(broker, 300, 50, "lz4")
    everything = consume(broker)
    assert len(everything) == len(written) + 50
    broker.stop()

    manager = ours(broker)
    log = manager.get(TOPIC, 0)
    assert log is not None
    assert [(r.offset, r.timestamp, r.key, r.value) for r in read_records(log)] == everything
    again = log.append_as_leader(checked(batch(2, producer=77, epoch=3, sequence=0)), 99, START_MS)
    assert again.duplicate, "the state of producers went through Kafka and back"
    manager.close()

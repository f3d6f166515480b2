"""`__consumer_offsets` goes from Apache Kafka to us and back: each serves what the other has committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from protocol import messages as m
from protocol.records.batch import batches
from runtime.entropy import SeededRandom
from runtime.os_files import OsFileSystem
from storage.log_dirs import read_meta
from storage.log_manager import LogManager
from tests.simulation.groups.replayed import replayed
from tests.storage_oracle.filled import CONFIG
from tests.support.kafka_process import KafkaProcess
from tests.support.logs import FixedClock, checked
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire import Wire
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.kafka

OFFSETS, TOPIC = "__consumer_offsets", "orders"
ONE = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
PROTOCOLS = ("classic", "consumer")
NOT_YET = (14, 15, 16)  # loading, not available, not the coordinator
Either = OttlaProcess | KafkaProcess


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaProcess]:
    with KafkaProcess(directory=tmp_path / "kafka", overrides=ONE) as running:
        yield running


@pytest.fixture
def ottla(tmp_path: Path) -> Iterator[OttlaProcess]:
    with OttlaProcess(ONE, directory=tmp_path / "ottla") as running:
        yield running


def fill(broker: Either, prefix: str) -> None:
    """A group of each protocol reads and commits, and leaves; one commits without members, twice."""
    with WireClient(broker.bootstrap_servers) as wire:
        wire.create_topic(TOPIC)
        wire.produce_values(TOPIC, *[b"%d" % number for number in range(10)])
    for protocol in PROTOCOLS:
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"{prefix}-{protocol}"}
        consumer = Consumer(
            {
                **settings,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([TOPIC])
        seen = 0
        while seen < 10:
            seen += len(consumer.consume(10 - seen, 1.0))
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 7, metadata=f"by {protocol}")], asynchronous=False)
        consumer.close()
    for offset in (3, 5):
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": f"{prefix}-simple"}
        consumer = Consumer(settings)
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
        consumer.close()


def committed(broker: Either, prefix: str) -> dict[str, tuple[int, int, str]]:
    """Offset, leader epoch and metadata of each group in the topic's one partition; empty while it loads."""
    named = m.OffsetFetchRequest.OffsetFetchRequestGroup
    groups = [named(group_id=f"{prefix}-{kind}", topics=None) for kind in (*PROTOCOLS, "simple")]
    with Wire(broker.bootstrap_servers) as wire:
        answer = wire.send(m.OffsetFetchRequest(groups=groups), 8)
    told = {}
    for group in answer.groups:
        if group.error_code in NOT_YET:
            return {}
        assert group.error_code == 0, group
        for topic in group.topics:
            [part] = topic.partitions
            told[group.group_id] = (part.committed_offset, part.committed_leader_epoch, part.metadata)
    return told


def listed(broker: Either) -> dict[str, tuple[str, str, str]]:
    with Wire(broker.bootstrap_servers) as wire:
        answer = wire.send(m.ListGroupsRequest(), 5)
    assert answer.error_code == 0, answer
    return {each.group_id: (each.protocol_type, each.group_state, each.group_type) for each in answer.groups}


def stored(log_dir: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((log_dir / f"{OFFSETS}-0").glob("*.log")))


def append(log_dir: Path, log_bytes: bytes) -> None:
    """Write batches to the end of Kafka's partition, through our storage."""
    files = OsFileSystem()
    meta = read_meta(files, f"{log_dir}/meta.properties")
    assert meta is not None
    manager = LogManager(files, FixedClock(), SeededRandom(b"k"), [str(log_dir)], lambda topic: CONFIG)
    manager.open(meta.cluster_id, meta.node_id)
    manager.load()
    log = manager.get(OFFSETS, 0)
    assert log is not None
    for at, size in batches(log_bytes):
        log.append_as_leader(checked(bytearray(log_bytes[at : at + size])), log.leader_epochs.latest_epoch, 0)
    log.write_pending()
    log.set_high_watermark(log.end_offset)
    manager.close()


def test_groups_change_hands(kafka: KafkaProcess, ottla: OttlaProcess) -> None:
    fill(ottla, "ours")
    fill(kafka, "theirs")
    ours, theirs = committed(ottla, "ours"), committed(kafka, "theirs")
    assert list(ours) == ["ours-classic", "ours-consumer", "ours-simple"]
    assert {each[0] for each in ours.values()} == {5, 7}
    ours_listed, theirs_listed = listed(ottla), listed(kafka)
    ottla.stop()
    kafka.stop()

    shard = replayed(stored(kafka.log_dir))
    for group, told in theirs.items():
        assert shard.offsets.committed.get(group, (TOPIC, 0))[:3] == told
    assert set(shard.groups) | set(shard.consumer.group_ids()) == {"theirs-classic", "theirs-consumer"}

    append(kafka.log_dir, stored(ottla.log_dir))
    kafka.start()

    wait_until(lambda: committed(kafka, "ours"), "Kafka to have loaded the groups")
    assert committed(kafka, "ours") == ours
    assert committed(kafka, "theirs") == theirs
    assert listed(kafka) == {**ours_listed, **theirs_listed}

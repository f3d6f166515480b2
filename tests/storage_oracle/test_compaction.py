"""A compacted topic, and `__consumer_offsets`, shrink in a running broker and read right, before and after a
restart; Apache Kafka's dump tool reads the cleaned segments without a complaint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from protocol import messages as m
from tests.storage_oracle.test_dump_log_segments import COMPLAINTS
from tests.support.kafka_process import run_tool
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.kafka

TOPIC, OFFSETS = "newest", "__consumer_offsets"
SETTINGS = {"log.cleaner.backoff.ms": "50", "offsets.topic.num.partitions": "1"}
COMPACTED = {
    "cleanup_policy": "compact",
    "segment_bytes": "1048576",
    "min_cleanable_dirty_ratio": "0.01",
    "delete_retention_ms": "0",
    "file_delete_delay_ms": "100",
}
KEYS = 50
Model = dict[bytes, tuple[int, bytes | None]]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OttlaProcess]:
    with OttlaProcess(SETTINGS, directory=tmp_path) as running:
        yield running


def write(broker: OttlaProcess, codec: str, count: int, model: Model) -> None:
    """`count` messages of 1 KiB on few keys, some of them tombstones; the model follows."""

    def told(error: object, message: object) -> None:
        assert error is None
        model[message.key()] = (message.offset(), message.value())

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": codec,
            "batch.size": 16384,
            "enable.idempotence": codec != "none",
        }
    )
    for number in range(count):
        key = b"key-%d" % (number * 7 % KEYS)
        value = None if number % 11 == 3 else b"%06d" % number + bytes(range(256)) * 4
        producer.produce(TOPIC, value, key, on_delivery=told)
        producer.poll(0)
    assert producer.flush(60) == 0


def read(broker: OttlaProcess, end: int) -> dict[bytes, tuple[int, bytes | None]]:
    """What a consumer finds from the start to the end of the log: of each key the last message."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: dict[bytes, tuple[int, bytes | None]] = {}
    count = last = 0
    while last < end - 1:
        for message in consumer.consume(1000, 1.0):
            assert message.error() is None
            found[message.key()] = (message.offset(), message.value())
            last = message.offset()
            count += 1
    consumer.close()
    return found


def clean_offset(broker: OttlaProcess, topic: str) -> int:
    file = broker.log_dir / "cleaner-offset-checkpoint"
    lines = file.read_text().splitlines() if file.exists() else []  # not before the first cleaning
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def segments(broker: OttlaProcess, topic: str) -> list[Path]:
    return sorted((broker.log_dir / f"{topic}-0").glob("*.log"))


def sealed(broker: OttlaProcess, topic: str) -> list[Path]:
    return segments(broker, topic)[:-1]


def await_cleaned(broker: OttlaProcess, topic: str) -> None:
    """Until each sealed segment is clean. Nobody may write meanwhile: the active segment must stay so."""
    active = int(segments(broker, topic)[-1].stem)
    wait_until(lambda: clean_offset(broker, topic) >= active, f"a cleaning of {topic} to {active}")


def dump(directory: Path, *flags: str) -> str:
    """Kafka's output, which must not hold a complaint; offsets may have gaps."""
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = [p for p in sorted(directory.iterdir()) if p.suffix in kinds]
    done = run_tool("DumpLogSegments", "--files", ",".join(map(str, files)), *flags)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text[-3000:]
    assert not [line for line in text.splitlines() if any(c in line.lower() for c in COMPLAINTS)]
    return text


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_compacted_topic_shrinks_and_reads_right(broker: OttlaProcess, codec: str) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        wire.create_topic(TOPIC, 1, **COMPACTED)
    model: Model = {}
    for _ in range(3):
        write(broker, codec, 3000, model)
        await_cleaned(broker, TOPIC)
    end = max(offset for offset, _ in model.values()) + 1
    assert end == 9000
    left = sum(path.stat().st_size for path in sealed(broker, TOPIC))
    assert left < 2 * KEYS * 1200, [(p.name, p.stat().st_size) for p in sealed(broker, TOPIC)]
    for _ in range(2):
        found = read(broker, end)
        for key, (offset, value) in model.items():
            assert found.get(key, (offset, None)) == (offset, value)
        broker.stop()
        text = dump(broker.log_dir / f"{TOPIC}-0", "--deep-iteration")
        assert f"compresscodec: {codec} " in text
        offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", text, re.MULTILINE)]
        assert {offset for offset, value in model.values() if value is not None} <= set(offsets)
        assert "passed sanity check" in dump(broker.log_dir / f"{TOPIC}-0", "--index-sanity-check")
        broker.start()


def alter(broker: OttlaProcess, topic: str, **values: str) -> None:
    entries = [
        m.IncrementalAlterConfigsRequest.AlterableConfig(
            name=name.replace("_", "."), config_operation=0, value=value
        )
        for name, value in values.items()
    ]
    resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=2, resource_name=topic, configs=entries
    )
    with WireClient(broker.bootstrap_servers) as wire:
        answer = wire.send(m.IncrementalAlterConfigsRequest(resources=[resource]))
    assert answer.responses[0].error_code == 0, answer


def test_committed_offsets_shrink_and_are_known_after_a_restart(broker: OttlaProcess) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    with WireClient(broker.bootstrap_servers) as wire:
        wire.create_topic(TOPIC, 1)

    def commit(offset: int) -> None:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)

    commit(0)
    alter(broker, OFFSETS, segment_ms="20", min_cleanable_dirty_ratio="0.01")
    count = 0

    def cleaned() -> bool:
        nonlocal count
        count += 1
        commit(count)
        return count >= 100 and clean_offset(broker, OFFSETS) >= 50

    wait_until(cleaned, "a cleaning of the committed offsets")
    await_cleaned(broker, OFFSETS)
    text = "".join(path.read_bytes().hex() for path in sealed(broker, OFFSETS))
    assert text.count(TOPIC.encode().hex()) < 60
    for _ in range(2):
        consumer.close()
        broker.stop()
        dump(broker.log_dir / f"{OFFSETS}-0", "--offsets-decoder")
        broker.start()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        (known,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=60)
        assert known.offset == count
    consumer.close()

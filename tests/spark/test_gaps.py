"""Offsets that hold no record for the reader look like lost data to one who counts: they are none.

Our broker serves logs that were put into its folders: one with transactions, written by Apache Kafka, and one
with the holes that a cleaner leaves.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from protocol.records.batch import ATTRIBUTES_AT, Record
from protocol.records.builder import build_batch
from protocol.records.crc import crc32c
from tests.spark.topics import Broker, Place, Running, batch, by_topic, create, places_read, stream
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DECIDED, CLEANED = "spark-decided", "spark-cleaned"
OUTCOMES = "cacaaco"  # of transactions of three records and a marker: committed, aborted, still open
SIZE = 3
COMMITTED = [
    (DECIDED, 0, 4 * i + j) for i, letter in enumerate(OUTCOMES) if letter == "c" for j in range(SIZE)
]
LEFT = [2, 5, 20, 21, 33]  # the offsets of CLEANED that still hold a record, of 40
LAST_DELTA, LAST_DELTA_AT = Struct(">i"), ATTRIBUTES_AT + 2
CRC, CRC_AT = Struct(">I"), ATTRIBUTES_AT - 4
LOG = "00000000000000000000.log"


def write_transactions(kafka: KafkaProcess) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": DECIDED})
    producer.init_transactions(60)
    for outcome in OUTCOMES:
        producer.begin_transaction()
        for i in range(SIZE):
            producer.produce(DECIDED, b"%d" % i, partition=0)
        assert producer.flush(60) == 0
        if outcome == "c":
            producer.commit_transaction(60)
        elif outcome == "a":
            producer.abort_transaction(60)


def cleaned_log() -> bytes:
    """Batches keep their range of offsets whatever was removed; the one from 10 to 19 went as a whole."""
    log = bytearray()
    for first, last in ((0, 9), (20, 29), (30, 39)):
        kept = [Record(i, 1_700_000_000_000, b"%d" % i, b"v") for i in LEFT if first <= i <= last]
        made = build_batch(kept, base_offset=first, leader_epoch=0, keep_offsets=True)
        LAST_DELTA.pack_into(made, LAST_DELTA_AT, last - first)
        CRC.pack_into(made, CRC_AT, crc32c(memoryview(made)[ATTRIBUTES_AT:]))
        log += made
    return bytes(log)


@pytest.fixture(scope="module")
def prepared(own_broker: OttlaProcess, apache_kafka: KafkaProcess) -> OttlaProcess:
    create(apache_kafka, DECIDED, 1)
    write_transactions(apache_kafka)
    for topic in (DECIDED, CLEANED):
        create(own_broker, topic, 1, {"cleanup.policy": "compact"} if topic == CLEANED else None)
    own_broker.kill()  # what is in the folders is recovered: no index or snapshot is needed
    shutil.copy(apache_kafka.log_dir / f"{DECIDED}-0" / LOG, own_broker.log_dir / f"{DECIDED}-0" / LOG)
    (own_broker.log_dir / f"{CLEANED}-0" / LOG).write_bytes(cleaned_log())
    own_broker.start()
    return own_broker


def check(spark: SparkSession, broker: Broker, checkpoint: Path, expected: list[Place], end: int) -> None:
    """Batches over parts of the log, and a stream, all with failOnDataLoss: none fails or waits."""
    topic = expected[0][0]
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert places_read(batch(spark, broker, **options)) == expected
    parts = batch(spark, broker, **options, minPartitions=end // 4)
    assert places_read(parts) == expected
    for start, stop in ((3, 4), (5, 8), (7, 15), (10, 21)):
        part = {"startingOffsets": by_topic(topic, {0: start}), "endingOffsets": by_topic(topic, {0: stop})}
        found = places_read(batch(spark, broker, **options, **part))
        assert found == [place for place in expected if start <= place[2] < stop]
    seen = stream(spark, broker, **options, startingOffsets="earliest", maxOffsetsPerTrigger=7)
    with Running(seen, checkpoint, availableNow=True) as query:
        query.finish()
    assert query.seen == expected


def test_markers_and_aborted_records_are_no_loss(
    spark: SparkSession, prepared: OttlaProcess, apache_kafka: KafkaProcess, tmp_path: Path
) -> None:
    """Ranges that are a marker alone, or aborted records only, or end in either; the open one is not read."""
    check(spark, apache_kafka, tmp_path / "kafka", COMMITTED, 24)
    check(spark, prepared, tmp_path / "ottla", COMMITTED, 24)


def test_cleaned_records_are_no_loss(spark: SparkSession, prepared: OttlaProcess, tmp_path: Path) -> None:
    check(spark, prepared, tmp_path, [(CLEANED, 0, offset) for offset in LEFT], 40)

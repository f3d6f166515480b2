"""Spark reads committed records beside writers of transactions: those that were committed, once, and no more.

Most of what is written is aborted, and a batch takes a few offsets only: many a batch and many a task of one
is over aborted records and markers alone. `failOnDataLoss` is on and has nothing to say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.spark.topics import Place, Running, batch, fresh, places_read, stream
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PARTITIONS = 2
SIZE = 2  # records of a transaction on each partition
TIMEOUT_S = 60


class Writer:
    """Writes transactions one after the other; `committed` are the places of what was committed."""

    def __init__(self, broker: OttlaProcess, topic: str, name: str) -> None:
        self._topic = topic
        self._open: list[Place] = []
        self.committed: list[Place] = []
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": f"{topic}-{name}",
                "transaction.timeout.ms": 600_000,  # one stays open while Spark reads
                "linger.ms": 0,
            }
        )
        self._producer.init_transactions(TIMEOUT_S)

    def begin(self) -> None:
        """Write the records of a transaction, up to the broker."""
        self._producer.begin_transaction()
        for partition in range(PARTITIONS):
            for _ in range(SIZE):
                self._producer.produce(self._topic, b"v", partition=partition, on_delivery=self._told)
        assert self._producer.flush(TIMEOUT_S) == 0
        assert len(self._open) == PARTITIONS * SIZE

    def _told(self, error: KafkaError | None, message: Message) -> None:
        assert error is None
        self._open.append((self._topic, message.partition(), message.offset()))

    def end(self, *, commit: bool) -> None:
        if commit:
            self._producer.commit_transaction(TIMEOUT_S)
            self.committed += self._open
        else:
            self._producer.abort_transaction(TIMEOUT_S)
        self._open = []

    def write(self, outcomes: str) -> None:
        """Whole transactions: `c` for one that is committed, `a` for one that is aborted."""
        for outcome in outcomes:
            self.begin()
            self.end(commit=outcome == "c")


def test_a_stream_and_batches_beside_writers(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    topic = fresh(ottla_process, PARTITIONS)
    writer, slow = Writer(ottla_process, topic, "quick"), Writer(ottla_process, topic, "slow")
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed", "startingOffsets": "earliest"}
    seen = stream(spark, ottla_process, **options, maxOffsetsPerTrigger=9, minPartitions=4)
    with Running(seen, tmp_path, processingTime="0 seconds") as query:
        for outcomes in ("aac", "aaaac", "ca"):
            writer.write(outcomes)
            query.wait_for(writer.committed)
        # nothing is read from the first open transaction on, committed or not
        slow.begin()
        stable = sorted(writer.committed)
        writer.write("caac")
        assert places_read(batch(spark, ottla_process, **options, minPartitions=7)) == stable
        query.wait_for(stable)
        slow.end(commit=False)
        query.wait_for(writer.committed)
        for commit in (True, False):
            slow.begin()
            writer.write("ac")
            slow.end(commit=commit)
        everything = writer.committed + slow.committed
        query.wait_for(everything)
    assert places_read(batch(spark, ottla_process, **options, minPartitions=9)) == sorted(everything)

"""Spark's source as a stream: triggers and limits, what appears meanwhile, a broker that restarts."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.brokers import STALL_LINE, WORKED
from bench.offsets import end_offsets
from ottla.client import KafkaClient
from tests.clients.readers import read_with_confluent
from tests.spark.topics import (
    TIMEOUT_S,
    Running,
    add_partitions,
    batch,
    by_topic,
    create,
    fresh,
    numbered,
    places,
    stream,
    write,
)
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOON = {"processingTime": "0 seconds"}  # a batch follows on a batch
QUICK_METADATA = {"kafka.metadata.max.age.ms": "100"}
LONG = "1h"


def test_batches_keep_to_their_greatest_size(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    """`availableNow`: what was there at the start in batches of the size, in order, then the end."""
    topic = fresh(ottla_process, 2)
    write(ottla_process, topic, numbered([0, 1], 0, 50))
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 40}
    with Running(stream(spark, ottla_process, **options), tmp_path, availableNow=True) as query:
        query.finish()
    assert query.sizes() == [40, 40, 20]
    assert query.seen == places(topic, {0: (0, 50), 1: (0, 50)})
    for number, expected in enumerate([(0, 20), (20, 40), (40, 50)]):
        assert query.batches[number] == places(topic, {0: expected, 1: expected})


def test_a_query_goes_on_where_its_checkpoint_says(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    """The second run's starting offsets count for nothing, what came in between is read once."""
    topic = fresh(ottla_process, 1)
    write(ottla_process, topic, numbered([0], 0, 10))
    started = {"subscribe": topic, "startingOffsets": by_topic(topic, {0: 4})}
    with Running(stream(spark, ottla_process, **started), tmp_path, availableNow=True) as first:
        first.finish()
    assert first.seen == places(topic, {0: (4, 10)})
    write(ottla_process, topic, numbered([0], 10, 15))
    again = stream(spark, ottla_process, subscribe=topic, startingOffsets="earliest")
    with Running(again, tmp_path, availableNow=True) as second:
        second.finish()
    assert second.seen == places(topic, {0: (10, 15)})


def test_a_batch_waits_for_its_least_size_or_its_delay(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    topic = fresh(ottla_process, 1)
    patient = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": 100}
    seen = stream(spark, ottla_process, **patient, maxTriggerDelay=LONG)
    write(ottla_process, topic, numbered([0], 0, 30))
    with Running(seen, tmp_path / "patient", **SOON) as query:
        query.wait_for(places(topic, {0: (0, 30)}))  # the first batch never waits
        write(ottla_process, topic, numbered([0], 30, 129))
        write(ottla_process, topic, numbered([0], 129, 130))
        query.wait_for(places(topic, {0: (0, 130)}))
    assert query.sizes()[1:] == [100]
    seen = stream(spark, ottla_process, **patient, maxTriggerDelay="200ms")
    with Running(seen, tmp_path / "hasty", **SOON) as query:
        query.wait_for(places(topic, {0: (0, 130)}))
        write(ottla_process, topic, numbered([0], 130, 140))
        query.wait_for(places(topic, {0: (0, 140)}))


def test_a_stream_begins_at_a_time(spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path) -> None:
    topic = fresh(ottla_process, 2)
    timed = [each._replace(timestamp_ms=1_700_000_000_000 + i) for i, each in enumerate(numbered([0], 0, 9))]
    write(ottla_process, topic, timed, **{"enable.idempotence": True})
    options = {"subscribe": topic, "startingTimestamp": 1_700_000_000_005}
    options["startingOffsetsByTimestampStrategy"] = "latest"
    with Running(stream(spark, ottla_process, **options), tmp_path, availableNow=True) as query:
        query.finish()
    assert query.seen == places(topic, {0: (5, 9)})


def test_the_continuous_trigger_copies_what_comes(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    """Readers that poll for ever, one a partition; started again, they go on behind the last whole epoch."""
    topic, copy = fresh(ottla_process, 2), fresh(ottla_process, 1)
    write(ottla_process, topic, numbered([0, 1], 0, 10))
    seen = stream(spark, ottla_process, subscribe=topic, startingOffsets="earliest")
    writer = seen.select("key", "value").writeStream.format("kafka").option("topic", copy)
    writer = writer.option("kafka.bootstrap.servers", ottla_process.bootstrap_servers)
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(continuous="100 milliseconds")
    end = partial(end_offsets, ottla_process.host, ottla_process.port, copy, 1)

    def epoch_with(offset: int) -> bool:
        """Whether the newest whole epoch ends there; older ones are cleared away meanwhile."""
        done = [int(path.name) for path in (tmp_path / "commits").glob("[0-9]*")]
        told = (tmp_path / "offsets" / str(max(done))).read_text() if done else "{}"
        ends: dict[str, object] = json.loads(told.splitlines()[-1])
        return ends == {topic: {"0": offset, "1": offset}}

    query = writer.start()
    try:
        wait_until(lambda: end() == [20], "the first records to be copied", TIMEOUT_S)
        write(ottla_process, topic, numbered([0, 1], 10, 20))
        wait_until(lambda: epoch_with(20), "an epoch with what came later", TIMEOUT_S)
    finally:
        query.stop()
    write(ottla_process, topic, numbered([0, 1], 20, 25))
    query = writer.start()
    try:
        wait_until(lambda: end() == [50], "what came in between to be copied", TIMEOUT_S)
    finally:
        query.stop()
    copied = read_with_confluent(ottla_process.bootstrap_servers, [copy], 1)[copy][0]
    values = [row.value for _, row in copied if row.value is not None]
    for partition in (b"0-", b"1-"):
        in_order = [value for value in values if value.startswith(partition)]
        assert in_order == [b"%s%d" % (partition, i) for i in range(25)]


def test_new_topics_and_new_partitions_are_read_from_their_start(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    topic = fresh(ottla_process, 1, stem="spark-grows")
    write(ottla_process, topic, numbered([0], 0, 5))
    seen = stream(spark, ottla_process, subscribePattern=f"{topic}.*", **QUICK_METADATA)
    with Running(seen, tmp_path, **SOON) as query:
        wait_until(lambda: query.query.lastProgress, "the starting offsets, which are the latest", TIMEOUT_S)
        add_partitions(ottla_process, topic, 3)
        write(ottla_process, topic, numbered([0, 2], 5, 8))
        expected = places(topic, {0: (5, 8), 2: (0, 3)})
        query.wait_for(expected)
        create(ottla_process, f"{topic}-second", 1)
        write(ottla_process, f"{topic}-second", numbered([0], 0, 4))
        query.wait_for(sorted(expected + places(f"{topic}-second", {0: (0, 4)})))


@pytest.mark.parametrize("ending", [OttlaProcess.stop, OttlaProcess.kill], ids=["stopped", "killed"])
def test_a_query_lives_through_a_restart_of_the_broker(
    spark: SparkSession,
    own_broker: OttlaProcess,
    tmp_path: Path,
    ending: Callable[[OttlaProcess], object],
) -> None:
    """The same query, not one started anew: it reads every acknowledged record once."""
    topic = fresh(own_broker, 2)
    seen = stream(spark, own_broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=1000)
    with Running(seen, tmp_path, **SOON) as query:
        write(own_broker, topic, numbered([0, 1], 0, 50))
        query.wait_for(places(topic, {0: (0, 50), 1: (0, 50)}))
        write(own_broker, topic, numbered([0, 1], 50, 2000))
        ending(own_broker)
        own_broker.start()
        write(own_broker, topic, numbered([0, 1], 2000, 2100))
        query.wait_for(places(topic, {0: (0, 2100), 1: (0, 2100)}))


def test_a_thousand_partitions_are_planned_while_others_are_served(
    spark: SparkSession, own_broker: OttlaProcess
) -> None:
    """A second client gets an answer before the plan is there, and nothing held the loop up for long."""
    topic = fresh(own_broker, 1000)
    write(own_broker, topic, numbered(range(0, 1000, 100), 0, 3))
    own_broker.stop()  # creating so many is not what is measured here
    own_broker.start()
    ended, answers = threading.Event(), []

    def ask() -> None:
        with KafkaClient(own_broker.bootstrap_servers, "beside", timeout_s=60) as client:
            while not ended.is_set():
                answers.append(client.metadata([]))

    beside = threading.Thread(target=ask)
    beside.start()
    try:
        wait_until(lambda: answers, "the client beside")
        before = len(answers)
        options = {"startingTimestamp": 0, "startingOffsetsByTimestampStrategy": "latest"}
        planned = batch(spark, own_broker, subscribe=topic, **options)
        partitions = planned.rdd.getNumPartitions()
        during = len(answers) - before
    finally:
        ended.set()
        beside.join()
    assert partitions == 1000
    assert during > 10
    own_broker.stop()
    [*_, (_, worked_ms)] = re.findall(STALL_LINE + WORKED, own_broker.output())
    own_broker.start()
    assert int(worked_ms) < 2000  # what a normal client is promised; the figure itself is for the bench

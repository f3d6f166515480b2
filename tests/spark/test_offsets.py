"""Where Spark's source begins and ends: by word, by offset, by time; the same on Apache Kafka."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.spark.topics import (
    Broker,
    Record,
    batch,
    by_topic,
    delete_records,
    fresh,
    places,
    places_read,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SIZE = 10  # of each partition with records
BASE_MS = 1_700_000_000_000
EARLY, LATE, EMPTY = 0, 1, 2  # partitions: 10 records a second apart, the same an hour later, none
HOUR_MS = 3_600_000
ALL = {EARLY: (0, SIZE), LATE: (0, SIZE)}


@pytest.fixture(scope="module")
def topic(either_broker: Broker) -> str:
    name = fresh(either_broker, 3, {"message.timestamp.before.max.ms": str(1 << 60)}, "spark-offsets")
    write(
        either_broker,
        name,
        [
            Record(partition, b"%d" % i, BASE_MS + later + i * 1000)
            for i in range(SIZE)
            for partition, later in ((EARLY, 0), (LATE, HOUR_MS))
        ],
    )
    return name


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("earliest", "latest", ALL),
        ({EARLY: 3, LATE: -2, EMPTY: -2}, "latest", {EARLY: (3, SIZE), LATE: (0, SIZE)}),
        ({EARLY: 3, LATE: 10, EMPTY: 0}, {EARLY: 5, LATE: -1, EMPTY: -1}, {EARLY: (3, 5)}),
        ("earliest", {EARLY: 0, LATE: 4, EMPTY: 0}, {LATE: (0, 4)}),
    ],
)
def test_a_range_of_offsets(spark: SparkSession, either_broker: Broker, topic, start, end, expected) -> None:
    options = {
        "subscribe": topic,
        "startingOffsets": start if isinstance(start, str) else by_topic(topic, start),
        "endingOffsets": end if isinstance(end, str) else by_topic(topic, end),
    }
    assert places_read(batch(spark, either_broker, **options)) == places(topic, expected)


def test_a_range_of_times(spark: SparkSession, either_broker: Broker, topic: str) -> None:
    """From the first record not before the one time until the first not before the other, or the end."""
    both = {"startingTimestamp": BASE_MS - 1, "endingTimestamp": BASE_MS + 2500, "subscribe": topic}
    strategy = {"startingOffsetsByTimestampStrategy": "latest"}
    assert places_read(batch(spark, either_broker, **both, **strategy)) == places(topic, {EARLY: (0, 3)})
    times = by_topic(topic, {EARLY: BASE_MS + 7000, LATE: BASE_MS + HOUR_MS + 1, EMPTY: BASE_MS})
    ends = by_topic(
        topic, {EARLY: BASE_MS + HOUR_MS, LATE: BASE_MS + HOUR_MS + 2000, EMPTY: BASE_MS + HOUR_MS}
    )
    options = {"startingOffsetsByTimestamp": times, "endingOffsetsByTimestamp": ends, "subscribe": topic}
    found = places_read(batch(spark, either_broker, **options, **strategy))
    assert found == places(topic, {EARLY: (7, SIZE), LATE: (1, 2)})


def test_a_start_after_the_last_record_is_an_error_or_the_end(
    spark: SparkSession, either_broker: Broker, topic: str
) -> None:
    """Both strategies: the broker says that there is no record at or after the time."""
    asked = {"startingTimestamp": BASE_MS + HOUR_MS // 2, "subscribe": topic, "fetchOffset.numRetries": 1}
    strict = batch(spark, either_broker, **asked, startingOffsetsByTimestampStrategy="error")
    with pytest.raises(Exception, match="No offset matched") as refused:
        places_read(strict)
    named = [each for each in (EARLY, EMPTY) if f"topic-partition {topic}-{each} " in str(refused.value)]
    assert len(named) == 1, "one of those without such a record"
    lenient = batch(spark, either_broker, **asked, startingOffsetsByTimestampStrategy="latest")
    assert places_read(lenient) == places(topic, {LATE: (0, SIZE)})


def test_assigned_partitions_and_topics_by_pattern(
    spark: SparkSession, either_broker: Broker, topic: str
) -> None:
    chosen = json.dumps({topic: [LATE, EMPTY]})
    assert places_read(batch(spark, either_broker, assign=chosen)) == places(topic, {LATE: (0, SIZE)})
    other = fresh(either_broker, 1, stem=f"{topic}-more")
    write(either_broker, other, [Record(0, b"x")])
    found = places_read(batch(spark, either_broker, subscribePattern=f"{topic}.*"))
    assert found == sorted([*places(topic, ALL), (other, 0, 0)])


def test_more_spark_partitions_than_kafka_partitions(
    spark: SparkSession, either_broker: Broker, topic: str
) -> None:
    split = batch(spark, either_broker, subscribe=topic, minPartitions=7)
    assert split.rdd.getNumPartitions() >= 7
    assert places_read(split) == places(topic, ALL)


def test_offsets_below_the_log_are_lost_data_or_its_start(spark: SparkSession, either_broker: Broker) -> None:
    """Deleted records: `earliest` is the new start; an offset that is gone is told, or skipped if allowed."""
    name = fresh(either_broker, 1)
    write(either_broker, name, [Record(0, b"%d" % i) for i in range(SIZE)])
    delete_records(either_broker, name, {0: 6})
    assert places_read(batch(spark, either_broker, subscribe=name)) == places(name, {0: (6, SIZE)})
    asked = {"subscribe": name, "startingOffsets": by_topic(name, {0: 2})}
    with pytest.raises(Exception, match=r"(?i)data.loss|out of range|aged out") as refused:
        places_read(batch(spark, either_broker, **asked))
    assert name in str(refused.value)
    allowed = batch(spark, either_broker, **asked, failOnDataLoss="false")
    assert places_read(allowed) == places(name, {0: (6, SIZE)})


def test_headers_come_as_they_were_written(spark: SparkSession, either_broker: Broker) -> None:
    """In order, with names that come twice, empty values and null values; none is null."""
    name = fresh(either_broker, 1)
    headers = [("a", b"1"), ("b", None), ("a", b""), ("ü", bytes(range(256)))]
    write(either_broker, name, [Record(0, b"with", headers=headers), Record(0, b"without")])
    rows = batch(spark, either_broker, subscribe=name, includeHeaders="true").orderBy("offset").collect()
    found = [(h["key"], None if h["value"] is None else bytes(h["value"])) for h in rows[0]["headers"]]
    assert found == headers
    assert rows[1]["headers"] is None

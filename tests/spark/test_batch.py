"""A Spark batch job reads and writes our topics through `format("kafka")`; its sums are those of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.clients.datasets import FLIGHTS, Row, flights
from tests.clients.readers import read_with_confluent
from tests.clients.writers import write_with_confluent
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

DISTANCE = 15  # column of a flight's line
PARTITIONS = 4


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(flights())


@pytest.fixture(scope="module")
def broker(rows: list[Row]):
    settings = {"num.partitions": str(PARTITIONS), "log.segment.bytes": str(4 << 20)}
    with OttlaProcess({**settings, "log.retention.ms": "-1"}) as broker:  # the flights are of 2013
        write_with_confluent(broker.bootstrap_servers, "flights", rows, "lz4", PARTITIONS)
        yield broker


@pytest.fixture(scope="module", autouse=True)
def compiled(spark: SparkSession) -> Iterator[None]:
    """With so many records it pays that queries are compiled."""
    names = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    before = {name: spark.conf.get(name) for name in names}
    for name, value in zip(names, ("true", "FALLBACK"), strict=True):
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, str(value))


def read(spark: SparkSession, broker: OttlaProcess, **options: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(**{"subscribe": "flights", "includeHeaders": "true", **options}).load()


def distance(row: Row) -> int:
    assert row.value is not None
    return int(row.value.split(b",")[DISTANCE])


def test_a_batch_job_counts_and_sums_the_same(
    spark: SparkSession, broker: OttlaProcess, rows: list[Row]
) -> None:
    from pyspark.sql import functions as f

    seen = read(spark, broker)
    miles = f.split(f.col("value").cast("string"), ",")[DISTANCE].cast("long")
    tail = f.filter("headers", lambda header: header["key"] == "tailnum")
    found = seen.agg(
        f.count("*").alias("count"),
        f.countDistinct("partition", "offset").alias("places"),
        f.countDistinct("key").alias("keys"),
        f.sum(miles).alias("miles"),
        f.sum(f.size(tail)).alias("tails"),
        f.min("timestamp").cast("long").alias("first"),
        f.max("timestamp").cast("long").alias("last"),
    ).first()
    assert found is not None
    assert found.asDict() == {
        "count": FLIGHTS,
        "places": FLIGHTS,
        "keys": len({row.key for row in rows}),
        "miles": sum(map(distance, rows)),
        "tails": sum(1 for row in rows if len(row.headers) == 3),
        "first": min(row.timestamp_ms for row in rows) // 1000,
        "last": max(row.timestamp_ms for row in rows) // 1000,
    }


def test_a_range_by_time_is_the_range_by_time(
    spark: SparkSession, broker: OttlaProcess, rows: list[Row]
) -> None:
    start_ms, end_ms = 1_370_044_800_000, 1_370_131_200_000  # the first of June 2013
    options = {"startingTimestamp": str(start_ms), "endingTimestamp": str(end_ms)}
    counts = {
        row["partition"]: row["count"]
        for row in read(spark, broker, **options).groupBy("partition").count().collect()
    }
    # Spark takes the offsets from the first record at or after each time to the first at or after the other.
    expected = {}
    for partition in range(PARTITIONS):
        stamps = [row.timestamp_ms for row in rows[partition::PARTITIONS]]
        first = next(i for i, stamp in enumerate(stamps) if stamp >= start_ms)
        last = next(i for i, stamp in enumerate(stamps) if stamp >= end_ms)
        if last > first:
            expected[partition] = last - first
    assert counts == expected


def test_the_sink_writes_what_other_clients_read(spark: SparkSession, broker: OttlaProcess) -> None:
    from pyspark.sql import functions as f

    written = (
        read(spark, broker).limit(5000).select("key", "value", "headers", f.lit("copied").alias("topic"))
    )
    written = written.cache()
    expected = {(bytes(r["key"]), bytes(r["value"]), len(r["headers"])) for r in written.collect()}
    writer = written.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    writer.option("includeHeaders", "true").save()
    seen = read_with_confluent(broker.bootstrap_servers, ["copied"], PARTITIONS)["copied"]
    records = [row for rows in seen for _, row in rows]
    assert len(records) == 5000
    assert {(row.key, row.value, len(row.headers)) for row in records} == expected

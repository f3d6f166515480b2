"""What Spark does in the benchmark, with little data: wrong work would make its figures wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import archive, spark_work
from bench import spark as part
from tests.spark.topics import create

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.ottla_process import OttlaProcess

pytestmark = pytest.mark.spark


def test_the_three_jobs_write_read_and_copy_all_records(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    for topic in (part.SOURCE, part.TARGET):
        create(ottla_process, topic, part.PARTITIONS)
    figures = spark_work.run_jobs(
        spark,
        tmp_path,
        bootstrap=ottla_process.bootstrap_servers,
        broker_pid=ottla_process.pid,
        source=part.SOURCE,
        target=part.TARGET,
        records=1000,
        record_bytes=part.RECORD_BYTES,
        batches=part.BATCHES,
    )
    assert set(figures) == {"write", "read", "copy"}
    for each in figures.values():
        assert each["seconds"] > 0
        assert each["spark_cpu"] > 0
        share = part.share(each)
        assert share is None or 0 < share < 1
    assert part.share({"broker_cpu": 1.0, "spark_cpu": 3.0}) == 0.25
    assert part.share({"broker_cpu": 0.0, "spark_cpu": 3.0}) is None


def test_the_archive_holds_what_the_topic_was_filled_with(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    create(ottla_process, archive.TOPIC, part.PARTITIONS)
    archive.fill(ottla_process.host, ottla_process.port, archive.TOPIC, 500)
    figures = spark_work.run_archive(
        spark,
        tmp_path,
        bootstrap=ottla_process.bootstrap_servers,
        broker_pid=ottla_process.pid,
        topic=archive.TOPIC,
        records=500,
        batches=2,
    )
    lives = {"ottla": [{"seconds": 2.0, "broker_cpu": 1.0, "spark_cpu": 3.0}], "other": []}
    time, rate, share = archive.table(500, lives, [])
    assert [row.value("ottla") for row in (time, rate, share)] == [2.0, 250.0, 25.0]
    assert figures["seconds"] > 0
    with pytest.raises(RuntimeError, match="the topic 501 records"):
        spark_work.run_archive(
            spark,
            tmp_path / "wrong",
            bootstrap=ottla_process.bootstrap_servers,
            broker_pid=ottla_process.pid,
            topic=archive.TOPIC,
            records=501,
            batches=1,
        )

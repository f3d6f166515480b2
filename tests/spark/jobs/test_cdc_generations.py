"""Parquet generations behind their manifest, and the limits of an order by offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.jobs.cdc import create, gone, item, run, send, sync_of
from tests.spark.jobs.groups import CHANGES
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.sinks.manifest import ManifestSink

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group(CHANGES)]


def test_generations_stay_for_a_grace_and_one_writer_owns_a_folder(
    spark: SparkSession, tmp_path: Path
) -> None:
    from spark_jobs.changes import latest, parse, summarize
    from spark_jobs.sinks.manifest import ManifestRefused, ManifestSink, frame_of, read_state

    columns = "topic string, partition int, offset long, key binary, value binary"

    def write(sink: ManifestSink, offset: int, *events: tuple[Any, Any]) -> None:
        rows = [
            ("t", 0, offset + number, json.dumps(key).encode(), json.dumps(value).encode())
            for number, (key, value) in enumerate(events)
        ]
        last = latest(parse(spark.createDataFrame(rows, columns)))
        sink.write("t", last, summarize(last), print)

    def keys(frame: Any) -> list[int]:
        return sorted(int(row["id"]) for row in frame.collect())

    folder = str(tmp_path / "state")
    slow, other = (ManifestSink(spark, folder, buckets=2, grace_s=1000.0) for _ in range(2))
    write(slow, 0, *(item(number) for number in range(10)))
    before = slow.manifest
    leftover = tmp_path / "state" / "data" / "00000002-killed" / "_bucket=0"
    leftover.mkdir(parents=True)
    write(slow, 10, *(gone(number) for number in range(9)), item(50, name="x"))
    assert keys(read_state(spark, folder)) == [9, 50]
    assert keys(frame_of(spark, slow.storage, before)) == list(range(10))  # a reader with the old manifest
    assert not leftover.exists()
    with pytest.raises(
        ManifestRefused, match="at generation 2, this job made 0: another job writes the same"
    ):
        write(other, 20, item(60))
    assert keys(read_state(spark, folder)) == [9, 50]
    quick = ManifestSink(spark, folder, grace_s=0.0)
    write(quick, 5, item(9, name="late"), gone(50))  # below what the state has
    assert quick.manifest.generation == 2
    write(quick, 20, gone(9), gone(50))
    assert keys(read_state(spark, folder)) == []
    assert quick.manifest.all_files() == []
    assert [path for path in (tmp_path / "state" / "data").rglob("*.parquet") if path.is_file()] == []
    fresh = ManifestSink(spark, folder, topic_epoch=1)
    write(fresh, 0, item(1, name="anew"))  # offsets of a topic that was made anew
    assert keys(read_state(spark, folder)) == [1]
    with pytest.raises(ManifestRefused, match="has column id as string, the schema says int"):
        ManifestSink(spark, folder, "id INT, name STRING")


def test_a_hadoop_file_system_holds_the_same(spark: SparkSession, tmp_path: Path) -> None:
    from spark_jobs.sinks.storage import HadoopStorage

    storage = HadoopStorage(spark, f"file://{tmp_path}/state")
    assert (storage.read("manifest.json"), storage.folders("data"), storage.files("data")) == (None, [], [])
    for text in ("one é", "two"):
        storage.replace("manifest.json", text)
        assert storage.read("manifest.json") == text
    storage.replace("x.txt", "x")
    spark.range(3).coalesce(1).write.parquet(storage.uri("data/g1/b=0"))
    assert storage.folders("data") == ["g1"]
    (parquet,) = (name for name in storage.files("data") if name.endswith(".parquet"))
    assert parquet.startswith("data/g1/b=0/part-")
    assert spark.read.parquet(storage.uri(parquet)).count() == 3
    storage.remove("data/g1")
    storage.remove("data/g1")
    assert storage.folders("data") == []


def test_a_partition_that_is_added_ends_the_job(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions

    from spark_jobs.sync import OrderLost

    admin = AdminClient({"bootstrap.servers": ottla_process.bootstrap_servers})
    create(ottla_process, "grown", 1)
    sync = sync_of("grown", tmp_path / "checkpoint")
    send(ottla_process, "grown", item(1))
    run(spark, ottla_process, sync)
    admin.create_partitions([NewPartitions("grown", 2)])["grown"].result(60)
    send(ottla_process, "grown", item(1, n=2), partition=1)
    with pytest.raises(
        OrderLost, match=r"topic grown: partition 1 was added after this job began \(with 1\)"
    ):
        run(spark, ottla_process, sync)
    with pytest.raises(OrderLost, match=r'topic grown: key {"id": 1} is in partitions 0 and 1'):
        run(spark, ottla_process, sync_of("grown", tmp_path / "another"))

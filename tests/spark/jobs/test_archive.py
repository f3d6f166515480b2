"""`archive` has every record once, whatever was killed; ranges, and what it says when it can't go on."""

from __future__ import annotations

import json
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.failures import JobFailed
from spark_jobs.jobs.archive import Shape, committed_files, run, run_batch
from spark_jobs.kafka import Kafka, Source
from spark_jobs.options import Stream
from tests.spark.jobs.job_process import JobProcess, run_job
from tests.spark.topics import Record, by_topic, delete_records, fresh, write
from tests.support.jars import spark_kafka_jars
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PARTITIONS = 3
NOW = "available-now"
Flights = list[Record]


def topic_of(broker: OttlaProcess, records: Flights) -> str:
    topic = fresh(broker, PARTITIONS, stem="archive")
    write(broker, topic, records)
    return topic


def kafka(broker: OttlaProcess) -> Kafka:
    return Kafka(broker.bootstrap_servers)


def source(topic: str, **options: object) -> Source:
    return Source((topic,), starting=options.pop("starting", "earliest"), **options)


def archived(spark: SparkSession, folder: Path) -> Counter[tuple[int, int]]:
    rows = spark.read.parquet(str(folder)).select("partition", "offset").collect()
    return Counter((row["partition"], row["offset"]) for row in rows)


def places_of(records: Flights, wanted: object = None) -> Counter[tuple[int, int]]:
    """Each record's partition and offset, once; only those whose number `wanted` says yes to."""
    ends = [0] * PARTITIONS
    found: Counter[tuple[int, int]] = Counter()
    for number, record in enumerate(records):
        if wanted is None or wanted(number, record):
            found[record.partition, ends[record.partition]] += 1
        ends[record.partition] += 1
    return found


def day(record: Record) -> str:
    return datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).date().isoformat()


def test_everything_by_date_as_it_was_written(
    spark: SparkSession, jobs_broker: OttlaProcess, flight_records: Flights, tmp_path: Path
) -> None:
    topic = topic_of(jobs_broker, flight_records[:4000])
    stream = Stream(str(tmp_path / "ck"), NOW, tmp_path / "progress.jsonl")
    folder = tmp_path / "archive"
    wanted = source(topic, max_offsets_per_trigger=1500)
    run(spark, kafka(jobs_broker), wanted, str(folder), stream)
    write(jobs_broker, topic, flight_records[4000:])
    run(spark, kafka(jobs_broker), wanted, str(folder), stream)
    rows = spark.read.parquet(str(folder)).orderBy("partition", "offset").collect()
    expected = sorted(flight_records, key=lambda record: record.partition)
    seen = [
        Record(
            row["partition"],
            bytes(row["value"]),
            int(row["timestamp"].timestamp() * 1000),
            bytes(row["key"]),
            tuple((header["key"], bytes(header["value"])) for header in row["headers"]),
        )
        for row in rows
    ]
    assert seen == expected
    assert [row["date"].isoformat() for row in rows] == [day(record) for record in expected]
    days = {path.name for path in folder.glob("date=*")}
    assert days == {f"date={day(record)}" for record in flight_records}
    batches = [json.loads(line) for line in stream.progress_file.read_text().splitlines()]
    assert [batch["batch"] for batch in batches] == list(range(len(batches)))
    assert sum(batch["records"] for batch in batches) == len(flight_records)
    assert batches[0]["records"] <= 1500
    assert batches[0]["lag"] > 0 == batches[-1]["lag"]
    ends = Counter(str(record.partition) for record in flight_records)
    assert batches[-1]["offsets"] == {topic: dict(ends)}
    files = sorted(f"file://{path}" for path in folder.rglob("*.parquet"))
    assert sorted(committed_files(folder)) == files


def test_a_range_of_offsets_or_of_time(
    spark: SparkSession, jobs_broker: OttlaProcess, flight_records: Flights, tmp_path: Path
) -> None:
    topic = topic_of(jobs_broker, flight_records)
    starts, ends = {0: 10, 1: 0, 2: 300}, {0: 500, 1: 7, 2: 301}
    wanted = source(topic, starting=by_topic(topic, starts), ending=by_topic(topic, ends))
    run_batch(spark, kafka(jobs_broker), wanted, str(tmp_path / "offsets"), Shape(as_text=True))
    assert archived(spark, tmp_path / "offsets") == Counter(
        (p, offset) for p in starts for offset in range(starts[p], ends[p])
    )
    values = spark.read.parquet(str(tmp_path / "offsets")).select("value").collect()
    assert {row["value"].encode() for row in values} <= {record.value for record in flight_records}

    # flights are by day, within a day not by time
    wanted = source(topic, starting="2013-01-03T05:00:00Z", ending="2013-01-05")
    run_batch(spark, kafka(jobs_broker), wanted, str(tmp_path / "days"), Shape(by_hour=True))
    first, end = (
        int(datetime.fromisoformat(text).timestamp() * 1000)
        for text in ("2013-01-03T05:00:00+00:00", "2013-01-05T00:00:00+00:00")
    )
    begun, ended = set(), set()

    def inside(_: int, record: Record) -> bool:
        if record.timestamp_ms >= first:
            begun.add(record.partition)
        if record.timestamp_ms >= end:
            ended.add(record.partition)
        return record.partition in begun - ended

    assert archived(spark, tmp_path / "days") == places_of(flight_records, inside)
    assert list((tmp_path / "days" / "date=2013-01-04").glob("hour=*"))

    with pytest.raises(JobFailed, match="holds an archive already"):
        run_batch(spark, kafka(jobs_broker), wanted, str(tmp_path / "days"))
    with pytest.raises(JobFailed, match="written by --batch"):
        run(spark, kafka(jobs_broker), source(topic), str(tmp_path / "days"), Stream(str(tmp_path / "ck")))
    late = source(topic, starting="2030-01-01")
    with pytest.raises(Exception, match=r"No offset matched.*timestamp"):
        run_batch(spark, kafka(jobs_broker), late, str(tmp_path / "late"))


def test_offsets_that_are_gone(
    spark: SparkSession, jobs_broker: OttlaProcess, flight_records: Flights, tmp_path: Path
) -> None:
    topic = topic_of(jobs_broker, flight_records[:1000])
    stream, folder = Stream(str(tmp_path / "ck"), NOW), tmp_path / "archive"
    run(spark, kafka(jobs_broker), source(topic), str(folder), stream)
    write(jobs_broker, topic, flight_records[1000:2000])
    ends = Counter(record.partition for record in flight_records[:1000])
    gone = {0: ends[0] + 50}
    delete_records(jobs_broker, topic, gone)
    with pytest.raises(JobFailed) as refused:
        run(spark, kafka(jobs_broker), source(topic), str(folder), stream)
    told = str(refused.value)
    assert told.startswith(f"topic {topic}, partition 0: offsets {ends[0]} to ")
    assert "--no-fail-on-data-loss" in told
    assert "\n" not in told
    assert archived(spark, folder) == places_of(flight_records[:1000])
    lenient = source(topic, fail_on_data_loss=False)
    run(spark, kafka(jobs_broker), lenient, str(folder), stream)
    left = places_of(flight_records[:2000])
    for offset in range(ends[0], gone[0]):
        del left[0, offset]
    assert archived(spark, folder) == left


def test_a_topic_that_does_not_exist(jobs_broker: OttlaProcess, tmp_path: Path) -> None:
    code, told = run_job(
        *("archive", "--bootstrap", jobs_broker.bootstrap_servers, "--topic", "nowhere", "--batch"),
        *("--to", tmp_path / "archive", "--source-option", "fetchOffset.numRetries=1"),
    )
    assert code == 1
    line = told.splitlines()[-1]
    assert line.startswith(f"error: topic nowhere: does not exist on {jobs_broker.bootstrap_servers}")
    assert "Traceback" not in told


def test_kills_of_the_driver_and_of_the_broker_leave_each_record_once(
    spark: SparkSession, jobs_broker: OttlaProcess, flight_records: Flights, tmp_path: Path
) -> None:
    """TERM at the end: the running batch is finished, and the checkpoint says so."""
    topic = topic_of(jobs_broker, flight_records[:3000])
    folder, checkpoint = tmp_path / "archive", tmp_path / "ck"

    def job(at_once: int) -> JobProcess:
        return JobProcess(
            *("archive", "--bootstrap", jobs_broker.bootstrap_servers, "--topic", topic, "--to", folder),
            *("--checkpoint", checkpoint, "--trigger", "fast", "--max-offsets-per-trigger", at_once),
            *("--jars", spark_kafka_jars()),
        )

    with job(30) as first:  # in so many batches that it is far from the end when it is killed
        first.wait_for(r"batch 2: \d+ records in .* lag [\d,]+, offsets ")
        first.kill()
    done = archived(spark, folder)
    assert 0 < sum(done.values()) < 3000
    begun = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")) + 1
    there = (3000 - sum(done.values())) // 300
    with job(300) as second:
        second.wait_for(r"batch \d+: ")
        jobs_broker.kill()
        jobs_broker.start()
        writer = threading.Thread(target=write, args=(jobs_broker, topic, flight_records[3000:]))
        writer.start()
        second.wait_for(rf"batch {begun + there + 3}: ")  # of what came since, which makes ten
        writer.join()
        assert second.terminate() == 0
        assert "asked to stop" in second.output()
    assert sorted(p.name for p in (checkpoint / "offsets").glob("[0-9]*")) == sorted(
        p.name for p in (checkpoint / "commits").glob("[0-9]*")
    )
    stream = Stream(str(checkpoint), NOW)
    run(spark, kafka(jobs_broker), source(topic), str(folder), stream)
    assert archived(spark, folder) == places_of(flight_records)

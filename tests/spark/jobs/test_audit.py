"""`audit` finds exactly what differs between two topics, or a topic and files, and nothing else."""

from __future__ import annotations

import itertools
import json
import threading
import zlib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.audit.reading import FilesPart, TopicPart
from spark_jobs.audit.run import Audit, run
from spark_jobs.audit.sides import Compared
from spark_jobs.failures import JobFailed
from spark_jobs.files.table import Table
from spark_jobs.jobs.archive import run_batch
from spark_jobs.jobs.audit import Output, perform
from spark_jobs.jobs.ingest import Shape
from spark_jobs.jobs.ingest import run as ingest
from spark_jobs.kafka import Kafka, Source
from spark_jobs.options import Stream
from tests.clients.datasets import flights
from tests.spark.topics import TIMEOUT_S, Record, delete_records, fresh, write
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.audit.report import Report

pytestmark = pytest.mark.spark

COUNT = 3_000
PARTITIONS = 3
WIDE = 7


@pytest.fixture(scope="module")
def broker():
    with OttlaProcess({"log.retention.ms": "-1"}) as broker:  # the flights are of 2013
        yield broker


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Flights as records, in order; each key in one partition, every 50th without a key."""
    found = []
    for number, row in enumerate(itertools.islice(flights(), COUNT)):
        key = None if number % 50 == 0 else row.key
        found.append(Record(partition_of(key, PARTITIONS), row.value, row.timestamp_ms, key, row.headers))
    return found


@pytest.fixture(scope="module")
def left(broker: OttlaProcess, records: list[Record]) -> str:
    topic = fresh(broker, PARTITIONS, stem="audit-left")
    write(broker, topic, records)
    return topic


def partition_of(key: bytes | None, partitions: int) -> int:
    return zlib.crc32(key or b"") % partitions


def wide(record: Record) -> Record:
    return record._replace(partition=partition_of(record.key, WIDE))


def places(records: list[Record]) -> list[str]:
    """The place of each record, as reports show it."""
    ends = [0] * max(PARTITIONS, WIDE)
    found = []
    for record in records:
        found.append(f"{record.partition}@{ends[record.partition]}")
        ends[record.partition] += 1
    return found


def audit(spark: SparkSession, broker: OttlaProcess, left: str, right: str, **options: object) -> Report:
    sides = (TopicPart(topic, broker.bootstrap_servers) for topic in (left, right))
    return run(spark, Audit(*sides, **options))


def counts(report: Report) -> dict[str, int]:
    return {check.name: check.count for check in report.checks if check.count}


def test_equal_topics_of_different_widths_pass(
    spark: SparkSession, broker: OttlaProcess, left: str, records: list[Record]
) -> None:
    right = fresh(broker, WIDE, stem="audit-right")
    write(broker, right, map(wide, records))
    report = audit(spark, broker, left, right)
    assert report.ok
    assert report.equal
    assert counts(report) == {}
    for side, moved in ((report.left, records), (report.right, list(map(wide, records)))):
        sizes = [sum(1 for record in moved if record.partition == int(p.name)) for p in side.partitions]
        assert [each.records for each in side.partitions] == sizes
        assert [each.last for each in side.partitions] == [size - 1 for size in sizes]
        assert side.holes == 0
        assert side.records == COUNT


def test_each_difference_is_found_and_named(
    spark: SparkSession, broker: OttlaProcess, left: str, records: list[Record]
) -> None:
    by_key: dict[bytes, list[int]] = {}
    for number, record in enumerate(records):
        if record.key is not None:
            by_key.setdefault(record.key, []).append(number)
    several = [numbers for numbers in by_key.values() if len(numbers) >= 3]
    missing, changed, headerless, repeated = (several[i][1] for i in range(4))
    early, late = several[4][0], several[4][1]  # of one key, swapped

    order = list(range(COUNT))
    order[early], order[late] = order[late], order[early]
    order.remove(missing)
    written = [wide(records[number]) for number in order]
    written[order.index(changed)] = wide(records[changed])._replace(value=b"another")
    written[order.index(headerless)] = wide(records[headerless])._replace(headers=())
    written.append(wide(records[repeated]))
    written.append(Record(0, b"never seen", key=b"nobody's"))

    right = fresh(broker, WIDE, stem="audit-right")
    write(broker, right, written)
    report = audit(spark, broker, left, right)
    assert not report.ok
    assert not report.equal
    assert counts(report) == {"lost": 1, "repeated": 1, "unknown": 1, "changed": 2, "reordered": 1}
    was, now = places(records), places(written)
    found = {check.name: check.examples for check in report.checks if check.count}
    key = {number: records[number].key.decode() for number in (missing, changed, headerless, repeated, early)}
    example = {name: [(one.key, one.left, one.right) for one in ones] for name, ones in found.items()}
    assert example["lost"] == [(key[missing], was[missing], None)]
    assert example["repeated"] == [(key[repeated], None, now[-2])]
    assert example["unknown"] == [("nobody's", None, now[-1])]
    assert example["reordered"] == [(key[early], was[early], now[order.index(early)])]
    assert sorted(example["changed"]) == sorted(
        (key[number], was[number], now[order.index(number)]) for number in (changed, headerless)
    )
    ignoring = audit(spark, broker, left, right, compared=Compared(("key", "value")))
    assert counts(ignoring) == {"lost": 1, "repeated": 1, "unknown": 1, "changed": 1, "reordered": 1}


def test_a_key_in_two_partitions_has_lost_its_order(
    spark: SparkSession, broker: OttlaProcess, left: str, records: list[Record]
) -> None:
    seen: set[bytes] = set()
    spread = []
    for record in map(wide, records):
        again = record.key in seen
        seen.add(record.key or b"")
        spread.append(record._replace(partition=(record.partition + again) % WIDE))
    twice = {record.key for record in records if record.key and sum(r.key == record.key for r in records) > 1}
    right = fresh(broker, WIDE, stem="audit-right")
    write(broker, right, spread)
    report = audit(spark, broker, left, right)
    assert counts(report) == {"split": len(twice)}
    assert not report.ok


def test_what_was_deleted_on_the_left_says_nothing_against_the_right(
    spark: SparkSession, broker: OttlaProcess, records: list[Record]
) -> None:
    """Where records say where they are from; where they are known by their contents they are unknown."""
    left, right = (fresh(broker, PARTITIONS, stem=f"audit-{side}") for side in ("old", "new"))
    write(broker, left, records)
    ends = [0] * PARTITIONS
    moved = []
    for record in records:
        origin = [
            ("origin.partition", b"%d" % record.partition),
            ("origin.offset", b"%d" % ends[record.partition]),
        ]
        ends[record.partition] += 1
        moved.append(record._replace(headers=(*record.headers, *origin)))
    write(broker, right, moved)
    delete_records(broker, left, {0: 100, 2: 7})
    report = audit(spark, broker, left, right, compared=Compared(match="origin"))
    assert report.ok
    assert counts(report) == {"outside": 107}
    assert report.check("outside").partitions == {"0": 100, "2": 7}
    assert report.left.notes == [
        "first offsets that are still there (older records were deleted): 0: 100, 2: 7"
    ]
    assert [each.records for each in report.left.partitions] == [ends[0] - 100, ends[1], ends[2] - 7]
    assert report.left.holes == 0


def test_files_of_lines_hold_what_the_topic_holds(
    spark: SparkSession, broker: OttlaProcess, records: list[Record], tmp_path: Path
) -> None:
    lines = [record.value for record in records]
    parts = [lines[:1000], lines[1000:2500], lines[2500:]]
    for number, some in enumerate(parts):
        (tmp_path / f"{number}.log").write_bytes(b"".join(line + b"\n" for line in some))
    right = fresh(broker, PARTITIONS, stem="audit-right")
    written = [Record(number, line) for number, some in enumerate(parts) for line in some]
    lost = written.pop(1700)
    write(broker, right, written)
    report = run(
        spark,
        Audit(
            FilesPart(str(tmp_path), "lines"),
            TopicPart(right, broker.bootstrap_servers),
            Compared(("value",)),
            order="partition",
        ),
    )
    assert counts(report) == {"lost": 1}
    assert report.check("lost").examples[0].left.endswith("/1.log@700")
    assert lost.value == parts[1][700]
    assert [each.records for each in report.left.partitions] == [1000, 1500, 500]


def test_rows_of_files_are_compared_with_what_ingest_made_of_them(
    spark: SparkSession, broker: OttlaProcess, tmp_path: Path
) -> None:
    lines = files("vega_datasets").joinpath("_data/airports.csv").read_text(encoding="utf-8").splitlines()
    for name, some in (("east", lines[1:2000]), ("west", lines[2000:])):
        (tmp_path / f"{name}.csv").write_text("\n".join([lines[0], *some]) + "\n", encoding="utf-8")
    topic = fresh(broker, PARTITIONS, stem="audit-airports")
    table, stream = Table(str(tmp_path / "*.csv"), "csv"), Stream(str(tmp_path / "ckpt"), "available-now")
    ingest(spark, Kafka(broker.bootstrap_servers), table, topic, Shape(key="iata"), stream)
    left, right = FilesPart(table.path, "csv", key="iata"), TopicPart(topic, broker.bootstrap_servers)
    report = run(spark, Audit(left, right, Compared(("key", "value"))))
    assert report.ok
    assert report.equal
    assert [each.records for each in report.left.partitions] == [1999, len(lines) - 2000]
    extra = tmp_path / "more.csv"
    extra.write_text(f"{lines[0]}\n{lines[1]}\nZZZ{lines[2][3:]}\n", encoding="utf-8")
    report = run(spark, Audit(left, right, Compared(("key", "value"))))
    assert counts(report) == {"lost": 2}  # a second copy of one, and one that is new
    examples = [one.left.rpartition("/")[2] for one in report.check("lost").examples]
    assert examples == ["more.csv@0", "more.csv@1"]


def test_an_archive_is_compared_place_by_place(
    spark: SparkSession, broker: OttlaProcess, left: str, records: list[Record], tmp_path: Path
) -> None:
    from pyspark.sql import functions as f

    whole, damaged = tmp_path / "whole", tmp_path / "damaged"
    run_batch(spark, Kafka(broker.bootstrap_servers), Source((left,)), str(whole))
    topic = TopicPart(left, broker.bootstrap_servers)
    by_place = Compared(match="place")
    report = run(spark, Audit(topic, FilesPart(str(whole)), by_place))
    assert report.ok
    assert report.equal
    assert [each.records for each in report.right.partitions] == [
        each.records for each in report.left.partitions
    ]
    keyed = {
        at: record.key.decode() for at, record in zip(places(records), records, strict=True) if record.key
    }
    missing, changed, twice = (next(at for at in keyed if at.startswith(f"{number}@")) for number in range(3))
    rows = spark.read.parquet(str(whole))
    place = f.concat_ws("@", "partition", "offset")
    value = f.when(place == changed, f.lit(b"another")).otherwise(f.col("value"))
    kept = rows.filter(place != missing).withColumn("value", value)
    kept.union(rows.filter(place == twice)).coalesce(1).write.parquet(str(damaged))
    report = run(spark, Audit(topic, FilesPart(str(damaged)), by_place))
    assert counts(report) == {"lost": 1, "changed": 1, "repeated": 1}
    found = {check.name: check.examples[0] for check in report.checks if check.count}
    assert (found["lost"].key, found["lost"].left) == (keyed[missing], missing)
    assert (found["changed"].left, found["changed"].right) == (changed, changed)
    assert (found["repeated"].key, found["repeated"].right) == (keyed[twice], twice)


def test_watching_a_copy_draws_its_lag_and_then_compares(
    spark: SparkSession,
    broker: OttlaProcess,
    left: str,
    records: list[Record],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = fresh(broker, PARTITIONS, stem="audit-right")
    write(broker, right, records[:1000])
    file, picture = tmp_path / "watch.jsonl", tmp_path / "watch.png"

    def write_the_rest() -> None:
        wait_until(lambda: file.exists() and file.read_text().count("\n") >= 2, "two looks", TIMEOUT_S)
        write(broker, right, records[1000:])

    writer = threading.Thread(target=write_the_rest)
    writer.start()
    sides = (TopicPart(topic, broker.bootstrap_servers) for topic in (left, right))
    output = Output(Path("-"), picture, watch_s=0.2, watch_file=file)
    report = perform(spark, Audit(*sides), output)
    writer.join()
    assert report.ok
    assert json.loads(capsys.readouterr().out)["ok"] is True
    lags = [json.loads(line)["lag"] for line in file.read_text().splitlines()]
    assert lags[:2] == [COUNT - 1000, COUNT - 1000]
    assert lags[-1] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_range_that_is_gone_is_refused(spark: SparkSession, broker: OttlaProcess, left: str) -> None:
    topic = fresh(broker, 1, stem="audit-range")
    write(broker, topic, [Record(0, b"%d" % number) for number in range(10)])
    part = TopicPart(topic, broker.bootstrap_servers, starting={0: 3}, ending={0: 7})
    report = run(spark, Audit(part, part))
    assert report.ok
    assert [(each.records, each.first, each.last) for each in report.left.partitions] == [(4, 3, 6)]
    delete_records(broker, topic, {0: 5})
    with pytest.raises(JobFailed, match=f"topic {topic}, partition 0: offset 3 is not among .* 5 to 10"):
        run(spark, Audit(part, part))
    with pytest.raises(JobFailed, match="topic nowhere does not exist"):
        audit(spark, broker, left, "nowhere")

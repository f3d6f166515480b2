"""Reads the sides of an audit: ranges of topics, archives, lines and rows of files, and what their holes are.

The range of a topic is fixed before anything is read, so that every pass sees the same records while others
still write. A side is kept on disk as a narrow table for the time of the audit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.audit import sides
from spark_jobs.audit.partitions import Partition, partitions_of, within
from spark_jobs.audit.report import SideReport
from spark_jobs.audit.sides import Compared
from spark_jobs.files.table import MALFORMED, Table, batch, columns_of
from spark_jobs.jobs.ingest import Shape, records
from spark_jobs.topics import TopicError, Topics

PLACE = ("file", "block", "number")
EARLIEST, LATEST = -2, -1  # what the source's JSON calls them


@dataclass(slots=True)
class TopicPart:
    """A range of a topic as one side; offsets by partition, missing ones are earliest and latest."""

    topic: str
    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict)
    starting: Mapping[int, int] = field(default_factory=dict)
    ending: Mapping[int, int] = field(default_factory=dict)
    committed: bool = True

    @property
    def name(self) -> str:
        return f"topic {self.topic}"


@dataclass(slots=True)
class FilesPart:
    """Files as one side: `archive` (Parquet with the columns of a topic), `lines` of text, or rows.

    Rows (csv, json, parquet) are those that `ingest` makes records of: key and value are its options.
    """

    path: str
    format: str = "archive"
    key: str | None = None
    value: str | None = None
    schema: str | None = None

    @property
    def name(self) -> str:
        return f"files {self.path}"


@dataclass(slots=True)
class Opened:
    """A side that is read: its records on disk, its numbers, and the range of a topic."""

    records: DataFrame
    report: SideReport
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)


@contextmanager
def kept(table: DataFrame) -> Iterator[DataFrame]:
    table.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield table
    finally:
        table.unpersist()


@contextmanager
def opened(
    spark: SparkSession, part: TopicPart | FilesPart, compared: Compared, is_right: bool
) -> Iterator[Opened]:
    if isinstance(part, TopicPart):
        with Topics(spark, part.bootstrap, part.options) as topics:
            with_origin = is_right and compared.match == "origin"
            starts, ends = range_of(topics, part)
            rows = read_topic(spark, part, starts, ends)
            with kept(sides.of_topic(rows, compared, with_origin)) as records:
                found = within(partitions_of(records), starts, ends)
                report = SideReport(part.name, found, notes=deleted(starts, part))
                if report.holes:
                    report.holes_are = why_holes(spark, topics, part, starts, ends, found)
                yield Opened(records, report, starts, ends)
    else:
        with kept(read_files(spark, part, compared)) as records:
            report = SideReport(part.name, partitions_of(records))
            report.holes_are = "offsets of which the files have no record"
            yield Opened(records, report)


def range_of(topics: Topics, part: TopicPart) -> tuple[dict[int, int], dict[int, int]]:
    """The offsets to read, fixed now. Refuses those that are gone: reading on would hide a loss."""
    first, end = topics.starts(part.topic), topics.ends(part.topic, part.committed)
    starts, ends = dict(first), dict(end)
    for asked, chosen in ((part.starting, starts), (part.ending, ends)):
        for number, offset in asked.items():
            if number not in end:
                raise TopicError(f"topic {part.topic} has no partition {number}")
            chosen[number] = {EARLIEST: first[number], LATEST: end[number]}.get(offset, offset)
            if not first[number] <= chosen[number] <= end[number]:
                raise TopicError(
                    f"topic {part.topic}, partition {number}: offset {offset} is not among those it has, "
                    f"{first[number]} to {end[number]}"
                )
    return starts, {number: max(end, starts[number]) for number, end in ends.items()}


def read_topic(
    spark: SparkSession, part: TopicPart, starts: Mapping[int, int], ends: Mapping[int, int]
) -> DataFrame:
    def offsets(chosen: Mapping[int, int]) -> str:
        return json.dumps({part.topic: {str(number): offset for number, offset in chosen.items()}})

    options = {f"kafka.{key.removeprefix('kafka.')}": value for key, value in part.options.items()}
    options["kafka.bootstrap.servers"] = part.bootstrap
    options["kafka.isolation.level"] = "read_committed" if part.committed else "read_uncommitted"
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("assign", json.dumps({part.topic: sorted(ends)}))
        .option("startingOffsets", offsets(starts))
        .option("endingOffsets", offsets(ends))
        .option("includeHeaders", "true")
        .load()
    )


def read_files(spark: SparkSession, part: FilesPart, compared: Compared) -> DataFrame:
    if part.format == "archive":
        return sides.of_archive(spark.read.parquet(part.path), compared)
    if part.format == "lines":
        lines = with_place(spark.read.text(part.path))
        found = lines.withColumn("value", f.encode("value", "UTF-8"))
        return sides.of_rows(found.withColumn("key", f.lit(None).cast("binary")), compared)
    table = Table(part.path, part.format, part.schema)
    columns = columns_of(spark, table)
    rows = with_place(batch(spark, table, columns, [part.path])).filter(f.col(MALFORMED).isNull())
    found = records(rows, Shape(part.key, part.value), columns.names, PLACE)
    if part.key is None:
        found = found.withColumn("key", f.lit(None).cast("binary"))
    return sides.of_rows(found, compared)


def with_place(rows: DataFrame) -> DataFrame:
    """Where each row is: its file, the part of it that a task reads, and a number that rises in the task."""
    return rows.select(
        "*",
        f.col("_metadata.file_path").alias("file"),
        f.col("_metadata.file_block_start").alias("block"),
        f.monotonically_increasing_id().alias("number"),
    )


def deleted(starts: Mapping[int, int], part: TopicPart) -> list[str]:
    gone = {
        number: start for number, start in sorted(starts.items()) if start and number not in part.starting
    }
    if not gone:
        return []
    told = ", ".join(f"{number}: {start:,}" for number, start in gone.items())
    return [f"first offsets that are still there (older records were deleted): {told}"]


def why_holes(
    spark: SparkSession,
    topics: Topics,
    part: TopicPart,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    found: list[Partition],
) -> str:
    """Offsets without a record are no loss by themselves: says what took them."""
    holes = sum(each.holes for each in found)
    reasons = []
    if part.committed:
        everything = TopicPart(part.topic, part.bootstrap, part.options, committed=False)
        aborted = read_topic(spark, everything, starts, ends).count() - sum(each.records for each in found)
        if aborted:
            reasons.append(f"{aborted:,} records of aborted transactions")
        holes -= aborted
    if holes and "compact" in topics.settings(part.topic).get("cleanup.policy", ""):
        reasons.append(f"{holes:,} compacted away or transaction markers")
    elif holes:
        reasons.append(f"{holes:,} transaction markers")
    return ", ".join(reasons)

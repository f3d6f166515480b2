"""One audit: reads both sides once, compares them, and makes the report.

The range of a topic is fixed before anything is read, so both passes see the same records while others
still write. Both sides are kept on disk as narrow tables for the time of the audit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.audit import compare, sides
from spark_jobs.audit.partitions import Partition, partitions_of, within
from spark_jobs.audit.report import Check, Example, Report, SideReport, shown
from spark_jobs.audit.sides import Compared
from spark_jobs.topics import TopicError, Topics

EXAMPLES = 5
EARLIEST, LATEST = -2, -1  # what the source's JSON calls them

MEANINGS = {
    compare.LOST: "records of the left that the right does not have",
    compare.REPEATED: "further copies on the right of records that the left has once",
    compare.UNKNOWN: "records of the right that the left never had",
    compare.CHANGED: "records whose key or place is the same and whose contents are not",
    compare.OUTSIDE: "records of the right from places that were not read on the left",
}


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
    """Files as one side: `archive` (Parquet with the columns of a topic) or `lines` of text."""

    path: str
    format: str = "archive"
    topic: str | None = None  # of an archive of several topics, the one to look at

    @property
    def name(self) -> str:
        return f"files {self.path}"


@dataclass(slots=True)
class Audit:
    """What is compared with what, and what passes."""

    left: TopicPart | FilesPart
    right: TopicPart | FilesPart
    compared: Compared = field(default_factory=Compared)
    order: str = "key"  # or "partition", "none"
    allow_repeats: bool = False


@dataclass(slots=True)
class Opened:
    """A side that is read: its records on disk, its numbers, and the range of a topic."""

    records: DataFrame
    report: SideReport
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)


def run(spark: SparkSession, audit: Audit) -> Report:
    with ExitStack() as stack:
        left = stack.enter_context(opened(spark, audit.left, audit.compared, is_right=False))
        right = stack.enter_context(opened(spark, audit.right, audit.compared, is_right=True))
        pairs = compare.compared(left.records, right.records)
        if audit.compared.match != "content":
            pairs = compare.outside(pairs, left.starts, left.ends)
        stack.enter_context(kept(pairs))
        return Report(left.report, right.report, audit.compared.match, checks(pairs, audit))


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
            report.holes_are = "offsets that the archive has no record of, as its topic where that has none"
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
    if part.format == "lines":
        lines = spark.read.text(part.path)
        return sides.of_lines(
            lines.select(
                "value",
                f.col("_metadata.file_path").alias("file"),
                f.col("_metadata.file_block_start").alias("block"),
                f.monotonically_increasing_id().alias("number"),
            ),
            compared,
        )
    rows = spark.read.parquet(part.path)
    if part.topic is not None and "topic" in rows.columns:
        rows = rows.filter(f.col("topic") == part.topic)
    return sides.of_archive(rows, compared)


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


def checks(pairs: DataFrame, audit: Audit) -> list[Check]:
    by_part = f.coalesce("right_part", "left_part").alias("part")
    counts: dict[str, dict[str, int]] = {}
    for row in pairs.groupBy("status", by_part).count().collect():
        counts.setdefault(row["status"], {})[row["part"]] = row["count"]
    findings = {name: pairs.filter(f.col("status") == name) for name in MEANINGS}
    both = {compare.LOST, compare.UNKNOWN} <= counts.keys()
    if both and audit.compared.match == "content" and "key" in audit.compared.fields:
        changes = compare.changed_by_key(pairs)
        findings[compare.CHANGED] = changes
        take_changes(counts, changes)
        findings[compare.LOST] = without(findings[compare.LOST], changes, "left")
        findings[compare.UNKNOWN] = without(findings[compare.UNKNOWN], changes, "right")
    passes = {compare.OUTSIDE} | ({compare.REPEATED} if audit.allow_repeats else set())
    made = []
    for name, meaning in MEANINGS.items():
        partitions = {part: count for part, count in counts.get(name, {}).items() if count}
        if name != compare.OUTSIDE or partitions:
            made.append(check(name, meaning, partitions, findings[name], fails=name not in passes))
    return [*made, *order_checks(pairs, audit)]


def take_changes(counts: dict[str, dict[str, int]], changes: DataFrame) -> None:
    """Moves changed records out of the counts of lost and unknown ones."""
    for row in changes.groupBy("left_part", "right_part").count().collect():
        counts[compare.LOST][row["left_part"]] -= row["count"]
        counts[compare.UNKNOWN][row["right_part"]] -= row["count"]
        changed = counts.setdefault(compare.CHANGED, {})
        changed[row["right_part"]] = changed.get(row["right_part"], 0) + row["count"]


def without(findings: DataFrame, changes: DataFrame, side: str) -> DataFrame:
    return findings.join(
        changes.select(f"{side}_part", f"{side}_pos"), [f"{side}_part", f"{side}_pos"], "anti"
    )


def order_checks(pairs: DataFrame, audit: Audit) -> list[Check]:
    if audit.order == "none":
        return []
    late = compare.out_of_order(pairs, audit.order)
    counts = {row["right_part"]: row["count"] for row in late.groupBy("right_part").count().collect()}
    told = "of their key" if audit.order == "key" else "of their partition"
    meaning = f"records that come after later ones {told}"
    made = [check(compare.REORDERED, meaning, counts, late)]
    if audit.order == "key":
        split = compare.split_keys(pairs)
        examples = [
            Example(shown(row["key"]), row["left_part"], f"{row['one']} and {row['other']}")
            for row in split.orderBy("left_part", "key").limit(EXAMPLES).collect()
        ]
        count = len(examples) if len(examples) < EXAMPLES else split.count()
        meaning = "keys of one partition that are in several on the right"
        made.append(Check("split", meaning, count, examples=examples))
    return made


def check(
    name: str, meaning: str, partitions: dict[str, int], findings: DataFrame, fails: bool = True
) -> Check:
    """The examples are the first by place; they cost a pass, so only where there is something to show."""
    count = sum(partitions.values())
    found = Check(name, meaning, count, fails, partitions=dict(sorted(partitions.items())))
    if count:
        order = ["right_part", "right_pos", "left_part", "left_pos"]
        for row in findings.orderBy(*order).limit(EXAMPLES).collect():
            found.examples.append(
                Example(
                    shown(row["key"]),
                    at(row["left_part"], row["left_pos"]),
                    at(row["right_part"], row["right_pos"]),
                )
            )
    return found


def at(part: str | None, pos: int | None) -> str | None:
    return None if part is None else f"{part}@{pos}"

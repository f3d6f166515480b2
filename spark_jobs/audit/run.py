"""One audit: reads both sides once, compares them, and makes the report."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.audit import compare
from spark_jobs.audit.reading import FilesPart, TopicPart, kept, opened
from spark_jobs.audit.report import Check, Example, Report, shown
from spark_jobs.audit.sides import Compared

EXAMPLES = 5

MEANINGS = {
    compare.LOST: "records of the left that the right does not have",
    compare.REPEATED: "further copies on the right of records that the left has once",
    compare.UNKNOWN: "records of the right that the left never had",
    compare.CHANGED: "records whose key or place is the same and whose contents are not",
    compare.OUTSIDE: "records of the right from places that were not read on the left",
}


@dataclass(slots=True)
class Audit:
    """What is compared with what, and what passes."""

    left: TopicPart | FilesPart
    right: TopicPart | FilesPart
    compared: Compared = field(default_factory=Compared)
    order: str = "key"  # or "partition", "none"
    allow_repeats: bool = False


def run(spark: SparkSession, audit: Audit) -> Report:
    with ExitStack() as stack:
        left = stack.enter_context(opened(spark, audit.left, audit.compared, is_right=False))
        right = stack.enter_context(opened(spark, audit.right, audit.compared, is_right=True))
        pairs = compare.compared(left.records, right.records)
        if audit.compared.match != "content":
            pairs = compare.outside(pairs, left.starts, left.ends)
        stack.enter_context(kept(pairs))
        return Report(left.report, right.report, audit.compared.match, checks(pairs, audit))


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

"""Finds what differs between two sides, in one shuffle by what records are recognised by.

Equal records are numbered on each side in the order of their places, and the n-th of one side is the n-th
of the other. What is left on the left was lost. What is left on the right is a repeat where the left has
such a record at all, else it is unknown. The first copy of a record is the one whose place counts for the
order, so a batch that was written again after a restart is repeated, but not out of order.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

LOST, REPEATED, UNKNOWN, CHANGED, MATCHED = "lost", "repeated", "unknown", "changed", "matched"
REORDERED, OUTSIDE = "reordered", "outside"


def compared(left: DataFrame, right: DataFrame) -> DataFrame:
    """One row per pair (or half of one): status, key, place on the left, place on the right."""
    both = left.withColumn("is_left", f.lit(True)).unionByName(right.withColumn("is_left", f.lit(False)))
    same = Window.partitionBy("id1", "id2")
    numbered = both.select(
        "*",
        f.row_number().over(Window.partitionBy("id1", "id2", "is_left").orderBy("part", "pos")).alias("copy"),
        f.max("is_left").over(same).alias("known"),
        f.max(f.when(f.col("is_left"), f.struct("d1", "d2"))).over(same).alias("should"),
    )
    place = f.struct("part", "pos", "key")
    pairs = numbered.groupBy("id1", "id2", "copy").agg(
        f.max(f.when(f.col("is_left"), place)).alias("l"),
        f.max(f.when(~f.col("is_left"), place)).alias("r"),
        f.max("known").alias("known"),
        f.max(f.when(~f.col("is_left"), f.struct("d1", "d2") != f.col("should"))).alias("differs"),
    )
    status = (
        f.when(f.col("r").isNull(), LOST)
        .when(~f.col("known"), UNKNOWN)
        .when(f.col("differs"), CHANGED)
        .when(f.col("l").isNull(), REPEATED)
        .otherwise(MATCHED)
    )
    return pairs.select(
        status.alias("status"),
        "id1",
        "id2",
        f.coalesce("l.key", "r.key").alias("key"),
        f.col("l.part").alias("left_part"),
        f.col("l.pos").alias("left_pos"),
        f.col("r.part").alias("right_part"),
        f.col("r.pos").alias("right_pos"),
    )


def changed_by_key(findings: DataFrame) -> DataFrame:
    """Lost and unknown records of one key, paired in the order of their places: a value was changed.

    Where records are recognised by their contents, this is how a change shows. Records without a key stay
    lost and unknown.
    """
    lost = _numbered(findings.filter(f.col("status") == LOST), "left_part", "left_pos")
    unknown = _numbered(findings.filter(f.col("status") == UNKNOWN), "right_part", "right_pos")
    paired = lost.join(
        unknown.select(
            "key",
            "turn",
            f.col("right_part").alias("to_part"),
            f.col("right_pos").alias("to_pos"),
        ),
        ["key", "turn"],
    )
    return paired.select(
        f.lit(CHANGED).alias("status"),
        "id1",
        "id2",
        "key",
        "left_part",
        "left_pos",
        f.col("to_part").alias("right_part"),
        f.col("to_pos").alias("right_pos"),
    )


def _numbered(rows: DataFrame, part: str, pos: str) -> DataFrame:
    turn = f.row_number().over(Window.partitionBy("key").orderBy(part, pos))
    return rows.filter(f.col("key").isNotNull()).withColumn("turn", turn)


def out_of_order(pairs: DataFrame, by: str) -> DataFrame:
    """Pairs whose record comes on the right after one that is later on the left.

    `by` is "key" (records of one key) or "partition" (all records that share both partitions, keys or not).
    Only places in the same partition have an order, so each pair of partitions is looked at for itself.
    """
    whole = pairs.filter(f.col("status").isin(MATCHED, CHANGED) & f.col("left_pos").isNotNull())
    groups: list[str | Column] = ["left_part", "right_part"]
    if by == "key":
        whole = whole.filter(f.col("key").isNotNull())
        groups.insert(0, "key")
    before = Window.partitionBy(*groups).orderBy("right_pos").rowsBetween(Window.unboundedPreceding, -1)
    latest = f.max("left_pos").over(before)
    return (
        whole.withColumn("after", latest)
        .filter(f.col("after") > f.col("left_pos"))
        .withColumn("status", f.lit(REORDERED))
    )


def outside(pairs: DataFrame, starts: Mapping[int, int], ends: Mapping[int, int]) -> DataFrame:
    """Tells unknown records whose place is not among those read on the left from unknown ones in it.

    Such a place was deleted on the left before the audit, or written after its end: nothing can be said.
    """
    if not starts:
        return pairs
    start, end = (
        f.create_map([f.lit(number).cast("long") for pair in sorted(places.items()) for number in pair])
        for places in (starts, ends)
    )
    place = f.col("id2")
    beyond = (place < start[f.col("id1")]) | (place >= end[f.col("id1")])
    status = f.when((f.col("status") == UNKNOWN) & beyond, OUTSIDE).otherwise(f.col("status"))
    return pairs.withColumn("status", status)


def split_keys(pairs: DataFrame) -> DataFrame:
    """Keys whose records of one partition on the left are in several on the right: their order is lost."""
    whole = pairs.filter(f.col("key").isNotNull() & f.col("left_part").isNotNull())
    spread = whole.filter(f.col("right_part").isNotNull()).groupBy("key", "left_part")
    found = spread.agg(f.min("right_part").alias("one"), f.max("right_part").alias("other"))
    return found.filter(f.col("one") != f.col("other"))

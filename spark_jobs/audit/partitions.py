"""What each partition of a side holds: counts, first and last place, holes, checksum.

The checksum is the sum of a 64-bit hash of each record, modulo 2^64: the same records give the same sum in
whatever order and partition they are, and a repeat changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

WORD = 1 << 64


@dataclass(slots=True)
class Partition:
    """One partition (or file). `holes` are offsets without a record, `runs` how many stretches they form."""

    name: str
    records: int
    checksum: int
    first: int | None = None
    last: int | None = None
    holes: int = 0
    runs: int = 0
    start: int | None = None  # the range that was read: start inclusive, end exclusive
    end: int | None = None

    @property
    def checksum_text(self) -> str:
        return f"{self.checksum:016x}"


def partitions_of(records: DataFrame) -> list[Partition]:
    """Sorted by number, or by name."""
    rows = (
        records.groupBy("part")
        .agg(
            f.count("*").alias("records"),
            f.sum(f.col("d1").cast("decimal(20,0)")).alias("sum"),
            f.min("pos").alias("first"),
            f.max("pos").alias("last"),
        )
        .collect()
    )
    found = {
        row["part"]: Partition(row["part"], row["records"], int(row["sum"]) % WORD, row["first"], row["last"])
        for row in rows
    }
    holed = []
    for each in found.values():
        assert each.first is not None
        assert each.last is not None
        each.holes = each.last - each.first + 1 - each.records
        if each.holes > 0:
            holed.append(each.name)
    if holed:
        before = f.lag("pos").over(Window.partitionBy("part").orderBy("pos"))
        steps = records.filter(f.col("part").isin(holed)).select(
            "part", (f.col("pos") - before).alias("step")
        )
        for row in steps.filter("step > 1").groupBy("part").count().collect():
            found[row["part"]].runs = row["count"]
    return sorted(found.values(), key=lambda each: place_key(each.name))


def place_key(name: str) -> tuple[bool, int, str]:
    """Partition numbers in their order, before names of files."""
    return (False, int(name), "") if name.isdecimal() else (True, 0, name)


def within(
    partitions: Iterable[Partition], starts: Mapping[int, int], ends: Mapping[int, int]
) -> list[Partition]:
    """The partitions of a topic with the range that was read: also empty ones, and holes at both edges."""
    found = {each.name: each for each in partitions}
    whole = []
    for number in sorted(ends):
        each = found.get(str(number)) or Partition(str(number), 0, 0)
        each.start, each.end = starts[number], ends[number]
        each.holes = each.end - each.start - each.records
        if each.first is None or each.last is None:
            each.runs = int(each.holes > 0)
        else:
            each.runs += (each.first > each.start) + (each.last + 1 < each.end)
        whole.append(each)
    return whole


def checksum(partitions: Iterable[Partition]) -> int:
    return sum(each.checksum for each in partitions) % WORD

"""Change events as Spark sees them: parsed, checked, and the latest of each key.

An event is a record with the row's primary key as key, `{"id": 7}`, and as value
`{"op": "c"|"r"|"u"|"d", "before": {...}, "after": {...}, ...}` (created, read, updated, deleted), both JSON;
a record without a value deletes too. `python -m spark_jobs binlog` writes such events, and other tools use
the same form. All events of one key are in one partition, so that their offsets are their order.

Values stay text until a sink knows the column's type: numbers as they were written, NULL as null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

EVENT = "op string, after map<string,string>"
OPS = ("c", "r", "u", "d")
TOLD_MAX = 5


@dataclass(slots=True, frozen=True)
class Refused:
    """A record that can't be applied: where it is and why."""

    topic: str
    partition: int
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}: {self.reason}"


# What a sink calls with records that it will never take, before it goes on without them; it may raise.
Refuse = Callable[[list[Refused]], None]


class PoisonRecords(RuntimeError):
    """Records that can't be applied, where no dead-letter topic is named."""

    def __init__(self, refused: Iterable[Refused]) -> None:
        self.refused = sorted(refused, key=lambda each: (each.topic, each.partition, each.offset))
        told = [str(each) for each in self.refused[:TOLD_MAX]]
        if len(self.refused) > TOLD_MAX:
            told.append(f"and {len(self.refused) - TOLD_MAX} more")
        super().__init__("; ".join(told))


def parse(records: DataFrame) -> DataFrame:
    """Kafka records as topic, partition, offset, key, op, keys, after, document, problem.

    `keys` and `after` map lower-case column names to text; `document` is the row as JSON; `problem` says what
    is wrong with a record, null where nothing is.
    """
    text = f.col("value").cast("string")
    event = f.from_json(text, EVENT)
    key = f.col("key").cast("string")
    raw = records.select(
        "topic",
        "partition",
        "offset",
        key.alias("key"),
        f.from_json(key, "map<string,string>").alias("keys"),
        text.alias("value"),
        event.alias("event"),
        f.get_json_object(text, "$.after").alias("document"),
    )
    op = f.when(f.col("value").isNull(), f.lit("d")).otherwise(f.col("event.op"))
    checked = raw.withColumn("op", op).withColumn("problem", problem())
    return checked.select(
        "topic",
        "partition",
        "offset",
        "key",
        "op",
        lowered("keys"),
        lowered("event.after"),
        "document",
        "problem",
    )


def problem() -> Column:
    """The first thing that is wrong with a record."""
    value, after = f.col("value"), f.col("event.after")
    rules = [
        (f.col("key").isNull(), f.lit("no key")),
        (~f.is_valid_utf8("key"), f.lit("the key is not UTF-8")),
        (f.col("keys").isNull() | (f.size("keys") == 0), f.lit("the key is not a JSON object with columns")),
        (twice("keys"), f.lit("the key names a column twice")),
        (value.isNull(), f.lit(None)),
        (~f.is_valid_utf8("value"), f.lit("the value is not UTF-8")),
        (f.col("op").isNull(), f.lit("the value is not a change event: no JSON object with an op")),
        (~f.col("op").isin(*OPS), f.concat(f.lit("unknown op "), f.col("op"))),
        (f.col("op") == "d", f.lit(None)),
        (after.isNull() | (f.size(after) == 0), f.lit("no row after the change")),
        (twice("event.after"), f.lit("the row names a column twice")),
    ]
    chain = f.when(*rules[0])
    for rule in rules[1:]:
        chain = chain.when(*rule)
    return chain.cast("string")


def twice(name: str) -> Column:
    names = f.transform(f.map_keys(name), f.lower)
    return f.size(f.array_distinct(names)) < f.size(names)


def lowered(name: str) -> Column:
    """Column names without case, as the database takes them; a map with a name twice is a problem already."""
    last = name.rpartition(".")[2]
    lower = f.transform_keys(f.col(name), lambda key, _: f.lower(key))
    return f.when(twice(name), f.lit(None)).otherwise(lower).alias(last)


def latest(events: DataFrame) -> DataFrame:
    """One row for each key: its last event, and the lowest and highest partition it was seen in."""
    fields = ["partition", "offset", "op", "keys", "after", "document"]
    grouped = events.groupBy("key").agg(
        f.max_by(f.struct(*fields), "offset").alias("last"),
        f.min("partition").alias("partition_min"),
        f.max("partition").alias("partition_max"),
    )
    return grouped.select("key", "last.*", "partition_min", "partition_max")


@dataclass(slots=True, frozen=True)
class Summary:
    """What sinks need to know of a batch's last events, found in one pass.

    `ends`: the offset after the last event by partition. `shapes`: the sets of columns that rows have,
    more than one after an ALTER TABLE. `split`: a key that was seen in two partitions, and those.
    """

    keys: int
    ends: dict[int, int]
    shapes: tuple[tuple[str, ...], ...]
    split: tuple[str, int, int] | None

    @property
    def columns(self) -> list[str]:
        return sorted({name for shape in self.shapes for name in shape})


def summarize(last: DataFrame) -> Summary:
    places = f.struct("key", "partition_min", "partition_max")
    rows = (
        last.groupBy("partition")
        .agg(
            f.count("*").alias("keys"),
            f.max("offset").alias("offset"),
            f.collect_set(f.when(f.col("op") != "d", f.array_sort(f.map_keys("after")))).alias("shapes"),
            f.min(f.when(f.col("partition_min") != f.col("partition_max"), places)).alias("split"),
        )
        .collect()
    )
    splits = sorted(tuple(row["split"]) for row in rows if row["split"] is not None)
    return Summary(
        sum(row["keys"] for row in rows),
        {row["partition"]: row["offset"] + 1 for row in sorted(rows)},
        tuple(sorted({tuple(shape) for row in rows for shape in row["shapes"]})),
        splits[0] if splits else None,
    )


def refused_of(rows: Iterable[Row]) -> list[Refused]:
    return [Refused(row["topic"], row["partition"], row["offset"], row["problem"]) for row in rows]

"""The two sides of an audit as narrow tables: one row a record, whatever it came from.

Columns of a side: `part` (partition number or file name, text), `pos` (offset or line number), `key`
(binary, may be null), `d1` and `d2` (128 bits of the compared contents), `id1` and `id2` (what a record is
recognised by on the other side: its contents, or its place in the topic it came from).

Nulls and empty values differ, and so do `["a", ""]` and `["", "a"]`: Spark's hash skips nulls, so each
nullable part goes in with a flag of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

# what drain --origin adds to a record; never part of the compared contents
ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP = "origin.partition", "origin.offset", "origin.timestamp"
ORIGIN_HEADERS = (ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP)

COMPARABLE = ("key", "value", "headers", "timestamp")
COLUMNS = ("part", "pos", "key", "d1", "d2", "id1", "id2")


@dataclass(slots=True)
class Compared:
    """What counts as the same record."""

    fields: tuple[str, ...] = ("key", "value", "headers")
    ignored_headers: tuple[str, ...] = ()
    match: str = "content"  # or "place", "origin"


@dataclass(slots=True)
class Side:
    """One side: its name in the report and its records."""

    name: str
    records: DataFrame
    offsets: bool  # whether `pos` counts on without holes where nothing is missing
    notes: list[str] = field(default_factory=list)


def of_topic(records: DataFrame, compared: Compared, origin: bool = False) -> DataFrame:
    """The source's rows (with headers). With `origin` they are recognised by the place they came from."""
    place = f.col("partition").cast("string").alias("part"), f.col("offset").alias("pos")
    ids = identity(compared, origin)
    key = f.col("key").cast("binary").alias("key")  # archives may have it as text
    return records.select(*place, key, *digests(compared, records.columns), *ids).select(*COLUMNS)


def of_archive(records: DataFrame, compared: Compared) -> DataFrame:
    """Rows that keep the columns of the topic they were read from, as `archive` writes them."""
    return of_topic(records, compared)


def of_rows(rows: DataFrame, compared: Compared) -> DataFrame:
    """Lines or rows of files: the file is the partition, the row's number the offset.

    Takes the columns key and value (binary), file, block (where the task's part of the file begins) and
    number (rising in a task).
    """
    row = f.row_number().over(Window.partitionBy("file").orderBy("block", "number"))
    records = rows.select(f.col("file").alias("part"), (row.cast("long") - 1).alias("pos"), "key", "value")
    return records.select(
        "part", "pos", "key", *digests(compared, records.columns), *identity(compared, False)
    )


def identity(compared: Compared, origin: bool) -> tuple[Column, Column]:
    if compared.match == "content":
        return f.col("d1").alias("id1"), f.col("d2").alias("id2")
    if origin:
        return header_number(ORIGIN_PARTITION).alias("id1"), header_number(ORIGIN_OFFSET).alias("id2")
    return f.col("partition").cast("long").alias("id1"), f.col("offset").cast("long").alias("id2")


def header_number(name: str) -> Column:
    """A header's decimal text as a number; null where a record has none."""
    found = f.filter("headers", lambda header: header["key"] == name)
    return f.get(found, f.lit(0))["value"].cast("string").try_cast("long")


def digests(compared: Compared, columns: list[str]) -> tuple[Column, Column]:
    """Two 64-bit hashes that take the compared fields in opposite orders."""
    parts: list[Column] = []
    for name in compared.fields:
        if name == "headers":
            parts.append(headers(compared, columns))
        elif name == "timestamp":
            parts.append(f.unix_millis("timestamp"))
        else:
            parts += [f.isnull(name), f.coalesce(f.col(name).cast("binary"), f.lit(b""))]
    salted = [f.lit(len(parts)), *parts]
    return f.xxhash64(*salted).alias("d1"), f.xxhash64(*reversed(salted), f.lit(1)).alias("d2")


def headers(compared: Compared, columns: list[str]) -> Column:
    """The headers that count, null values told from empty ones; none are an empty list."""
    kind = "array<struct<key:string,value:binary>>"
    if "headers" not in columns:
        return f.lit(0)
    ignored = [*ORIGIN_HEADERS, *compared.ignored_headers]
    kept = f.filter(
        f.coalesce(f.col("headers"), f.array().cast(kind)), lambda header: ~header["key"].isin(*ignored)
    )
    flat = f.transform(
        kept,
        lambda header: f.struct(
            header["key"].alias("key"),
            f.isnull(header["value"]).alias("none"),
            f.coalesce(header["value"], f.lit(b"")).alias("value"),
        ),
    )
    return f.struct(f.size(flat), flat)

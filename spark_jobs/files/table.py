"""Files of rows (CSV, JSON lines, Parquet) as a stream or a batch, with what is wrong with each row.

Beside the files' own columns there are `_malformed` (the row's text where it does not fit the columns, else
null) and `_file`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StringType, StructField, StructType

from spark_jobs.failures import JobFailed, explain
from spark_jobs.sinks.storage import Storage

MALFORMED, FILE = "_malformed", "_file"
FORMATS = ("csv", "json", "parquet")
DEFAULTS: dict[str, dict[str, str]] = {
    # names of the first line are checked against the columns: files of other columns don't get mixed up
    "csv": {"header": "true", "enforceSchema": "false"},
    "json": {},
    "parquet": {},
}


@dataclass(slots=True, frozen=True)
class Table:
    """Where the files are and how they are read."""

    path: str  # a folder, a file or a glob
    format: str
    schema: str | None = None  # DDL; else told from the files that are there
    options: Mapping[str, str] = field(default_factory=dict)
    files_per_batch: int = 1000

    def reader_options(self) -> dict[str, str]:
        parsing = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
        own = parsing if self.format != "parquet" else {}
        return {**DEFAULTS[self.format], **own, **self.options}


def columns_of(spark: SparkSession, table: Table) -> StructType:
    """The files' columns, told or found. Raises JobFailed where they can't be found."""
    if table.schema is not None:
        try:
            told: Any = StructType.fromDDL(table.schema)
        except Exception as error:
            raise JobFailed(f"--schema {table.schema!r}: {explain(error)}") from error
        return StructType(told.fields)
    reader = spark.read.format(table.format).options(**table.reader_options())
    found: StructType = reader.load(table.path).schema
    fields = [each for each in found.fields if each.name != MALFORMED]
    if not fields:
        raise JobFailed(f"{table.path}: no columns can be told from the files. Say them with --schema.")
    return StructType(fields)


def columns_json(columns: StructType) -> str:
    return json.dumps(columns.jsonValue())


def columns_from(told: str) -> StructType:
    return StructType.fromJson(json.loads(told))


def schema_of(table: Table, columns: StructType) -> StructType:
    if table.format == "parquet":
        return columns
    return StructType([*columns.fields, StructField(MALFORMED, StringType())])


def stream(spark: SparkSession, table: Table, columns: StructType) -> DataFrame:
    """Each file once, when it appears; files must be put in place whole (by a rename)."""
    reader: Any = spark.readStream.format(table.format).options(**table.reader_options())
    reader = reader.option("maxFilesPerTrigger", table.files_per_batch)
    return marked(reader.schema(schema_of(table, columns)).load(table.path), table)


def batch(spark: SparkSession, table: Table, columns: StructType, paths: list[str]) -> DataFrame:
    """These files' rows."""
    reader: DataFrameReader = spark.read.format(table.format).options(**table.reader_options())
    return marked(reader.schema(schema_of(table, columns)).load(paths), table)


def marked(rows: DataFrame, table: Table) -> DataFrame:
    found = rows.withColumn(FILE, f.col("_metadata.file_path"))
    return found.withColumn(MALFORMED, f.lit(None).cast("string")) if table.format == "parquet" else found


def files_of_batch(checkpoint: Storage, number: int) -> list[str]:
    """The files of a batch, from Spark's checkpoint: offsets/N says up to which list of sources/0."""
    first, last = (log_offset(checkpoint.read(f"offsets/{each}")) for each in (number - 1, number))
    found = []
    for each in range(first + 1, last + 1):
        text = checkpoint.read(f"sources/0/{each}") or checkpoint.read(f"sources/0/{each}.compact") or ""
        entries = [json.loads(line) for line in text.splitlines()[1:]]
        found += [unquote(entry["path"]) for entry in entries if entry["batchId"] == each]
    return found


def log_offset(text: str | None) -> int:
    return -1 if text is None else int(json.loads(text.splitlines()[-1])["logOffset"])


def unreadable(spark: SparkSession, table: Table, columns: StructType, paths: list[str]) -> dict[str, str]:
    """Which of the files can't be read to their end, and why: looks at each by itself."""
    found = {}
    for path in paths:
        try:
            batch(spark, table, columns, [path]).write.format("noop").mode("overwrite").save()
        except Exception as error:
            if not about_files(error):
                raise
            found[path] = explain(error)
    return found


def about_files(error: BaseException) -> bool:
    """Whether a file is to blame, rather than Spark, the disk or the broker."""
    return any(word in explain(error) for word in ("can't be read", "no such file", "not permitted"))

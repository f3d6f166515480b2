"""Files into a topic: rows of CSV, JSON and Parquet files, or lines of growing text files (log collection).

What a restart can repeat. How far the job is stands in the checkpoint: which files were taken, or for lines
how many bytes of each file. Kafka's sink in Spark is at-least-once, so a batch that was broken off is written
again whole: at most --files-per-batch files, or --max-bytes of lines, come twice. Nothing is lost. With
--origin each record says by headers from which file and position it is, so that readers know a repeat, and
`audit` shows it.

Files of rows are taken once, when they appear: put them in place whole, by a rename. Lines are taken when
their end (LF) is there; files may grow, be renamed (rotation) and be emptied (copytruncate), see
files/lines.py. What is lost: the rest of a file that is deleted or emptied before its lines were read (with
copytruncate that includes what is written between the copy and the truncation), and a file that no pattern
names any more when it is looked for the first time: let the pattern, or a folder, cover rotated names.

Bad input ends the job with file and row before anything of its batch is written, or goes to --quarantine, a
folder of JSON lines (file, position or row, reason) by batch; a repeated batch writes its own anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import click
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from spark_jobs.failures import JobFailed
from spark_jobs.files import table as tables
from spark_jobs.files.line_source import FORMAT, LineSource
from spark_jobs.files.table import FILE, FORMATS, MALFORMED, Table
from spark_jobs.kafka import Kafka, write_batch
from spark_jobs.options import Stream, kafka_options, launch_options, pairs, stream_options
from spark_jobs.progress import Progress
from spark_jobs.running import Stopping, run_query
from spark_jobs.session import Launch, build_session, stop
from spark_jobs.sinks.storage import storage_of

NOTE = "ingest.json"  # beside Spark's checkpoint: the columns that were told from the files
POSITION = "_position"
LINE_COLUMNS = ("value", "file", "position")
HEADERS = "array<struct<key:string,value:binary>>"


@dataclass(slots=True, frozen=True)
class Lines:
    """Text files whose lines are records."""

    patterns: tuple[str, ...]
    max_bytes: int = 256 << 20  # of a batch
    unfinished_after_s: float = 0.0
    fail_on_data_loss: bool = True
    max_line_bytes: int = 1_000_000


@dataclass(slots=True, frozen=True)
class Shape:
    """How a row becomes a record. Each text is a column's name, or an expression of Spark SQL."""

    key: str | None = None
    value: str | None = None  # None: the row as JSON; of lines, the line
    partition: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # name -> column
    headers_column: str | None = None  # an array of (key, value), as `archive` writes it
    origin: bool = False


def column(rows: DataFrame, told: str) -> Column:
    return f.col(f"`{told}`") if told in rows.columns else f.expr(told)


def as_bytes(rows: DataFrame, told: str) -> Column:
    """Binary stays, text is UTF-8, anything else its text."""
    found = column(rows, told)
    kind = rows.select(found.alias("it")).schema["it"].dataType.typeName()
    return found if kind == "binary" else f.encode(found.cast("string"), "UTF-8")


def records(rows: DataFrame, shape: Shape, data: list[str], kept: Sequence[str] = ()) -> DataFrame:
    """key, value, headers and partition of rows; `data` are the columns that make the JSON value.

    The columns of `kept` stay beside them.
    """
    made: dict[str, Column] = {}
    if shape.key is not None:
        made["key"] = as_bytes(rows, shape.key)
    if shape.value is not None:
        made["value"] = as_bytes(rows, shape.value)
    else:
        struct = f.struct(*(f.col(f"`{name}`") for name in data))
        made["value"] = f.encode(f.to_json(struct, {"ignoreNullFields": "false"}), "UTF-8")
    if shape.partition is not None:
        made["partition"] = column(rows, shape.partition).cast("int")
    named = {name: as_bytes(rows, told) for name, told in shape.headers.items()}
    if shape.origin:
        named["ingest.file"] = f.encode(f.col(FILE), "UTF-8")
        if POSITION in rows.columns:
            named["ingest.position"] = f.encode(f.col(POSITION).cast("string"), "UTF-8")
    if named or shape.headers_column:
        each = [f.struct(f.lit(name).alias("key"), told.alias("value")) for name, told in named.items()]
        # a header of a null column is left out
        headers = f.filter(f.array(*each), lambda one: one["value"].isNotNull()).cast(HEADERS)
        if shape.headers_column:
            own = f.coalesce(column(rows, shape.headers_column).cast(HEADERS), f.array().cast(HEADERS))
            headers = f.concat(own, headers)
        made["headers"] = headers
    return rows.select(*(told.alias(name) for name, told in made.items()), *kept)


@dataclass(slots=True)
class Load:
    """The function of foreachBatch. `failure` keeps what ended it: Spark passes on only its text."""

    kafka: Kafka
    topic: str
    shape: Shape
    data: list[str]
    quarantine: str | None = None
    recover: Callable[[int], tuple[DataFrame, dict[str, str]]] | None = None
    failure: Exception | None = None
    refused: int = 0

    def __call__(self, rows: DataFrame, number: int) -> None:
        try:
            self.load(rows, number)
        except Exception as error:
            self.failure = error
            raise

    def load(self, rows: DataFrame, number: int) -> None:
        """One pass over the files: the rows are kept until bad ones are put aside and good ones written."""
        kept, files = rows.persist(), dict[str, str]()
        try:
            try:
                bad, example = bad_rows(kept)
            except Exception as error:
                if self.recover is None or self.quarantine is None or not tables.about_files(error):
                    raise
                kept.unpersist()
                rows, files = self.recover(number)
                kept = rows.persist()
                bad, example = bad_rows(kept)
            if example is not None and self.quarantine is None:
                raise malformed(example)
            if bad or files:
                self.put_aside(kept.where(f.col(MALFORMED).isNotNull()), files, number)
                self.refused += bad + len(files)
            good = kept.where(f.col(MALFORMED).isNull()) if bad else kept
            write_batch(records(good, self.shape, self.data), self.kafka, self.topic)
        finally:
            kept.unpersist()

    def put_aside(self, bad: DataFrame, files: dict[str, str], number: int) -> None:
        """What is bad in a batch, as one file of JSON lines, which a repeated batch writes anew."""
        made = bad.select(
            f.col(FILE).alias("file"),
            *(f.col(name).alias("position") for name in (POSITION,) if name in bad.columns),
            f.col(MALFORMED).alias("row"),
            f.lit("malformed").alias("reason"),
        )
        if files:
            lost = bad.sparkSession.createDataFrame(list(files.items()), "file string, reason string")
            made = made.unionByName(lost, allowMissingColumns=True)
        made.coalesce(1).write.mode("overwrite").json(f"{self.quarantine}/batch={number}")

    def told(self) -> str:
        return f", {self.refused:,} in quarantine" if self.refused else ""


def bad_rows(rows: DataFrame) -> tuple[int, Row | None]:
    """How many rows are bad, and one of them; reads every row."""
    place = [POSITION] if POSITION in rows.columns else []
    one = f.when(f.col(MALFORMED).isNotNull(), f.struct(FILE, *place, MALFORMED))
    found = rows.agg(f.count(MALFORMED).alias("bad"), f.min(one).alias("example")).collect()[0]
    return found["bad"], found["example"]


def malformed(row: Row) -> JobFailed:
    at = f", byte {row[POSITION]}" if POSITION in row else ""
    return JobFailed(
        f"file {row[FILE]}{at}: malformed: {row[MALFORMED][:200]!r}. Nothing of this batch is written. "
        "Mend the file, or give --quarantine to go on without such rows."
    )


def run(
    spark: SparkSession,
    kafka: Kafka,
    source: Table | Lines,
    topic: str,
    shape: Shape,
    stream: Stream,
    stopping: Stopping | None = None,
    quarantine: str | None = None,
) -> None:
    """Loads what is there (available-now), or what appears until it is told to stop."""
    if isinstance(source, Lines):
        rows, load = line_stream(spark, source), Load(kafka, topic, shape, ["value"], quarantine)
        if shape.value is None:
            load.shape = Shape(
                shape.key, "value", shape.partition, shape.headers, shape.headers_column, shape.origin
            )
    else:
        columns = remembered(spark, source, stream.checkpoint)
        rows = tables.stream(spark, source, columns)
        load = Load(
            kafka,
            topic,
            shape,
            columns.names,
            quarantine,
            recovery(spark, source, columns, stream.checkpoint),
        )
    check(rows, load)
    writer = rows.writeStream.foreachBatch(load).option("checkpointLocation", stream.checkpoint)
    query = writer.trigger(**stream.trigger_arguments()).queryName("ingest").start()
    try:
        run_query(query, Progress(stream.progress_file, extra=load.told), stopping)
    except JobFailed as error:
        if isinstance(load.failure, JobFailed):
            raise load.failure from error
        raise


def check(rows: DataFrame, load: Load) -> None:
    """A column that isn't there is said before the query begins."""
    records(rows, load.shape, load.data)


def line_stream(spark: SparkSession, lines: Lines) -> DataFrame:
    spark.dataSource.register(LineSource)
    reader = spark.readStream.format(FORMAT).option("patterns", json.dumps(lines.patterns))
    reader = reader.option("maxBytesPerTrigger", lines.max_bytes)
    reader = reader.option("unfinishedAfterSeconds", lines.unfinished_after_s)
    rows = reader.option("failOnDataLoss", str(lines.fail_on_data_loss).lower()).load()
    size = f.octet_length("value")
    long = f.concat(f.lit("a line of "), size.cast("string"), f.lit(" bytes, see --max-line-bytes"))
    return rows.select(
        "value",
        "file",
        "position",
        f.col("file").alias(FILE),
        f.col("position").alias(POSITION),
        f.when(size > lines.max_line_bytes, long).alias(MALFORMED),
    )


def remembered(spark: SparkSession, table: Table, checkpoint: str) -> StructType:
    """The columns stay what they were when the checkpoint was begun, unless they are told anew."""
    storage = storage_of(spark, checkpoint)
    text = storage.read(NOTE)
    if table.schema is None and text is not None:
        return tables.columns_from(text)
    columns = tables.columns_of(spark, table)
    storage.replace(NOTE, tables.columns_json(columns))
    return columns


def recovery(
    spark: SparkSession, table: Table, columns: StructType, checkpoint: str
) -> Callable[[int], tuple[DataFrame, dict[str, str]]]:
    """Looks at each file of a batch that can't be read: those that can, and why the others can't."""

    def recover(number: int) -> tuple[DataFrame, dict[str, str]]:
        paths = tables.files_of_batch(storage_of(spark, checkpoint), number)
        bad = tables.unreadable(spark, table, columns, paths)
        good = [path for path in paths if path not in bad]
        rows = tables.batch(spark, table, columns, good or paths)
        return rows if good else rows.where("false"), bad

    return recover


@click.command("ingest", context_settings={"show_default": True, "default_map": {"trigger": "available-now"}})
@click.argument("paths", nargs=-1, required=True)
@kafka_options
@click.option("--topic", required=True, help="Where the records go.")
@click.option(
    "--format", "form", type=click.Choice([*FORMATS, "lines"]), required=True, help="What the files are."
)
@click.option("--key", metavar="COLUMN", help="The record's key: a column, or an expression of Spark SQL.")
@click.option("--value", metavar="COLUMN", help="The value; else the row as JSON, or the line.")
@click.option("--partition", metavar="COLUMN", help="The partition's number; else the producer chooses.")
@click.option("--header", multiple=True, metavar="[NAME=]COLUMN", help="A record header. Repeatable.")
@click.option("--headers", metavar="COLUMN", help="A column that holds headers, as archive's files have it.")
@click.option("--origin", is_flag=True, help="Headers ingest.file and, of lines, ingest.position.")
@click.option("--schema", metavar="DDL", help="Columns and types, 'id INT, ...'; else told from the files.")
@click.option("--read-option", multiple=True, metavar="KEY=VALUE", help="Spark's for the format. Repeatable.")
@click.option("--files-per-batch", type=click.IntRange(1), default=1000, help="Files of one batch at most.")
@click.option(
    "--quarantine", metavar="FOLDER", help="Where bad rows and files are noted; else they end the job."
)
@click.option("--max-bytes", type=click.IntRange(1), default=256 << 20, help="Of lines in one batch at most.")
@click.option("--max-line-bytes", type=click.IntRange(1), default=1_000_000, help="A longer line is bad.")
@click.option(
    "--unfinished-after", default=0.0, metavar="SECONDS", help="Take a last line without end then; 0: never."
)
@click.option(
    "--fail-on-data-loss/--no-fail-on-data-loss", default=True, help="End where promised lines are gone."
)
@stream_options
@launch_options
def command(
    paths: tuple[str, ...],
    kafka: Kafka,
    topic: str,
    form: str,
    key: str | None,
    value: str | None,
    partition: str | None,
    header: tuple[str, ...],
    headers: str | None,
    origin: bool,
    schema: str | None,
    read_option: tuple[str, ...],
    files_per_batch: int,
    quarantine: str | None,
    max_bytes: int,
    max_line_bytes: int,
    unfinished_after: float,
    fail_on_data_loss: bool,
    stream: Stream,
    launch: Launch,
) -> None:
    """Write files into a topic: rows of CSV, JSON or Parquet files, or each line of text files.

    PATHS are files, folders or globs (one, unless --format is lines). Each file of rows is taken once; with a
    --trigger of an interval the folder is watched, and files must appear whole, by a rename. With --format
    lines files may grow, be renamed and be emptied: each new line is a record, and the checkpoint knows how
    much of each file was read. The files must be there on every executor under the same path.

    At-least-once: after a kill the batch that ran is written again, up to --files-per-batch files or
    --max-bytes of lines. Nothing is lost.

    \b
    Examples:
      python -m spark_jobs ingest flights/ --format csv --bootstrap localhost:9092 --topic flights \\
        --checkpoint ck --key carrier --header origin --header to=dest
      python -m spark_jobs ingest /var/log/app --format lines --bootstrap localhost:9092 --topic logs \\
        --checkpoint ck --trigger "2 seconds" --key file --origin
      python -m spark_jobs ingest /data/orders --format parquet --bootstrap localhost:9092 --topic again \\
        --checkpoint ck --key key --value value --headers headers
    """
    named = {name.split("=", 1)[0]: name.split("=", 1)[-1] for name in header}
    shape = Shape(key, value, partition, named, headers, origin)
    source: Table | Lines
    if form == "lines":
        source = Lines(paths, max_bytes, unfinished_after, fail_on_data_loss, max_line_bytes)
    elif len(paths) > 1:
        raise click.UsageError("Give one path: a folder, a file or a glob.")
    else:
        options = pairs(read_option, "--read-option")
        source = Table(paths[0], form, schema, options, files_per_batch)
    stopping = Stopping()
    spark = build_session("ingest", launch)
    try:
        run(spark, kafka, source, topic, shape, stream, stopping, quarantine)
    finally:
        stop(spark)

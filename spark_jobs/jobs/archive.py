"""A topic to Parquet files by date, each record once.

As a stream: Spark's file sink writes which files belong to which batch into `_spark_metadata` of the folder,
one small file for each batch, put in place by a rename. A batch that was broken off left files that no entry
names, and is written again from the same offsets: who reads through Spark (or through `_spark_metadata`, as
`committed_files` does) has every record exactly once, whatever was killed and when. Other readers must leave
out files that no entry names.

As one batch (--batch): a range of offsets or of time. The folder is complete when it has `_SUCCESS`.

The columns are the record's: key, value, headers, topic, partition, offset, timestamp, timestampType, and
`date` (UTC, of the timestamp), by which the files are in folders. `hour` is one of them with --by-hour.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import click
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.failures import JobFailed
from spark_jobs.kafka import Kafka, Source, read_batch, read_stream
from spark_jobs.options import Stream, kafka_options, launch_options, optional_stream_options, range_options
from spark_jobs.progress import Progress
from spark_jobs.running import Stopping, run_query
from spark_jobs.session import Launch, build_session, stop
from spark_jobs.sinks.storage import storage_of

METADATA = "_spark_metadata"
SUCCESS = "_SUCCESS"


@dataclass(slots=True, frozen=True)
class Shape:
    """What the files look like."""

    by_hour: bool = False
    as_text: bool = False  # key and value as strings instead of bytes
    compression: str = "zstd"
    records_per_file: int = 0  # 0: as many as a task has

    @property
    def folders(self) -> list[str]:
        return ["date", "hour"] if self.by_hour else ["date"]


def shaped(records: DataFrame, shape: Shape) -> DataFrame:
    """The columns of the files."""
    found = records.withColumn("date", f.to_date("timestamp"))
    if shape.by_hour:
        found = found.withColumn("hour", f.hour("timestamp"))
    if shape.as_text:
        texts: dict[str, Column] = {name: f.decode(f.col(name), "UTF-8") for name in ("key", "value")}
        found = found.withColumns(texts)
    return found


def run(
    spark: SparkSession,
    kafka: Kafka,
    source: Source,
    folder: str,
    stream: Stream,
    shape: Shape | None = None,
    stopping: Stopping | None = None,
    progress: Progress | None = None,
) -> None:
    """Follows the topic until it is told to stop, or has what is there (available-now)."""
    shape = shape or Shape()
    if source.ending:
        raise JobFailed("--ending-offsets is for --batch: a stream has no end")
    if storage_of(spark, folder).read(SUCCESS) is not None:
        raise JobFailed(f"{folder} was written by --batch: a stream needs a folder of its own")
    records = shaped(read_stream(spark, kafka, source), shape)
    writer = records.writeStream.format("parquet").partitionBy(*shape.folders).outputMode("append")
    writer = writer.options(path=folder, checkpointLocation=stream.checkpoint, compression=shape.compression)
    if shape.records_per_file:
        writer = writer.option("maxRecordsPerFile", shape.records_per_file)
    query = writer.trigger(**stream.trigger_arguments()).queryName("archive").start()
    run_query(query, progress or Progress(stream.progress_file), stopping)


def run_batch(
    spark: SparkSession,
    kafka: Kafka,
    source: Source,
    folder: str,
    shape: Shape | None = None,
    overwrite: bool = False,
) -> None:
    """Writes a range. Raises JobFailed where the folder has something already."""
    shape = shape or Shape()
    storage = storage_of(spark, folder)
    if storage.folders(METADATA) or storage.files(METADATA):
        raise JobFailed(f"{folder} belongs to a stream ({METADATA}): a batch needs a folder of its own")
    if not overwrite and storage.files(""):
        state = (
            "holds an archive already"
            if storage.read(SUCCESS) is not None
            else (f"has files and no {SUCCESS}: a run was broken off")
        )
        raise JobFailed(f"{folder} {state}. Give another folder, or --overwrite to write it anew")
    writer = shaped(read_batch(spark, kafka, source), shape).write.mode("overwrite")
    if shape.records_per_file:
        writer = writer.option("maxRecordsPerFile", shape.records_per_file)
    writer.option("compression", shape.compression).partitionBy(*shape.folders).parquet(folder)


def committed_files(folder: Path) -> list[str]:
    """Names of the files of a stream's folder that count, for readers without Spark (a local folder)."""
    entries = sorted(
        (path for path in (folder / METADATA).iterdir() if re.fullmatch(r"\d+(\.compact)?", path.name)),
        key=lambda path: int(path.name.split(".")[0]),
    )
    compact = max((i for i, path in enumerate(entries) if path.suffix), default=0)
    found: dict[str, None] = {}
    for path in entries[compact:]:
        for line in path.read_text(encoding="utf-8").splitlines()[1:]:
            entry = json.loads(line)
            if entry["action"] == "add":
                found[entry["path"]] = None
            else:
                found.pop(entry["path"], None)
    return list(found)


@click.command("archive", context_settings={"show_default": True, "default_map": {"trigger": "10 seconds"}})
@kafka_options
@range_options
@click.option("--to", "folder", required=True, metavar="FOLDER", help="Where the Parquet files go.")
@click.option("--batch", is_flag=True, help="One batch over a range, instead of following the topic.")
@click.option("--overwrite", is_flag=True, help="With --batch: replace what is in the folder.")
@click.option("--by-hour", is_flag=True, help="Folders by hour below those by date.")
@click.option("--text", "as_text", is_flag=True, help="Key and value as text (UTF-8) instead of bytes.")
@click.option("--compression", default="zstd", help="zstd, snappy, lz4, gzip or none.")
@click.option("--records-per-file", type=click.IntRange(0), default=0, help="At most so many; 0: no limit.")
@optional_stream_options
@launch_options
def command(
    kafka: Kafka,
    source: Source,
    folder: str,
    batch: bool,
    overwrite: bool,
    by_hour: bool,
    as_text: bool,
    compression: str,
    records_per_file: int,
    stream: Stream,
    launch: Launch,
) -> None:
    """Archive a topic as Parquet files by date, each record once.

    Following a topic (--checkpoint), a restart repeats nothing, also after kill -9: Spark writes an
    unfinished batch again from the same offsets, and _spark_metadata names the files that count. Read the
    folder through Spark; other readers must leave out files that _spark_metadata doesn't name.

    With --batch the range is --starting-offsets to --ending-offsets. A time means each partition's first
    record at or after it, so records that are out of the order of their timestamps go by their offsets.

    When offsets are gone before they were read, the job ends and names them (--fail-on-data-loss); with
    --no-fail-on-data-loss it goes on with what is left, and the archive has a hole.

    \b
    Examples:
      python -m spark_jobs archive --bootstrap localhost:9092 --topic orders --to /data/orders \\
        --checkpoint /data/orders-ck --trigger "1 minute"
      python -m spark_jobs archive --bootstrap localhost:9092 --topic orders --to /data/july --batch \\
        --starting-offsets 2026-07-01 --ending-offsets 2026-08-01
    """
    shape = Shape(by_hour, as_text, compression, records_per_file)
    if batch == bool(stream.checkpoint):
        raise click.UsageError("Give --checkpoint to follow the topic, or --batch for a range.")
    if overwrite and not batch:
        raise click.UsageError("--overwrite is for --batch.")
    stopping = Stopping()
    spark = build_session("archive", launch)
    try:
        if batch:
            run_batch(spark, kafka, source, folder, shape, overwrite)
        else:
            run(spark, kafka, source, folder, stream, shape, stopping)
    finally:
        stop(spark)

"""The queries of `behaviour`, and running several of them together.

    events topic -> sessions (append, Parquet) -> pairs by window: a topic (update mode) and Parquet (append)

The second stage reads the first one's Parquet files as a stream. Spark's file sink keeps a log of which files
count and its file source obeys it, so each session is counted once whatever is killed when. The topic's
records are totals under the key of pair and window: one that comes again after a restart changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.failures import JobFailed, explain
from spark_jobs.kafka import Kafka, Source, read_stream, stream_writer
from spark_jobs.options import Stream
from spark_jobs.progress import Progress
from spark_jobs.running import LOOK_EVERY_S, Stopping, end_after_batch, spark_of
from spark_jobs.sinks.storage import HadoopStorage, storage_of
from spark_jobs.views.events import (
    SESSIONS,
    Fields,
    Times,
    counted,
    is_whole,
    pairs_of,
    records_of,
    refused,
    sessions_of,
    views_of,
)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Behaviour:
    """One pipeline. Its checkpoint folder holds one checkpoint for each query."""

    kafka: Kafka
    source: Source
    out: str
    stream: Stream
    result_topic: str | None = None
    fields: Fields = field(default_factory=Fields)
    times: Times = field(default_factory=Times)
    ahead: int = 10
    skip_bad: bool = False

    def folder(self, name: str) -> str:
        return f"{self.out.rstrip('/')}/{name}"

    def checkpoint(self, name: str) -> str:
        return f"{self.stream.checkpoint.rstrip('/')}/{name}"


def run(spark: SparkSession, job: Behaviour, stopping: Stopping | None = None) -> None:
    """Until everything that is there is done (available-now), or until it is told to stop."""
    make_folder(spark, job.folder("sessions"))
    if job.stream.trigger_arguments().get("availableNow"):
        run_queries([start_sessions(spark, job)], job, stopping)
        if stopping is None or not stopping.asked:
            run_queries(start_pairs(spark, job), job, stopping)
    else:
        run_queries([start_sessions(spark, job), *start_pairs(spark, job)], job, stopping)


def make_folder(spark: SparkSession, path: str) -> None:
    """The file source wants its folder to be there from the start."""
    storage = storage_of(spark, path)
    if isinstance(storage, HadoopStorage):
        storage.system.mkdirs(storage.path(""))
    else:
        Path(storage.uri("").removeprefix("file://")).mkdir(parents=True, exist_ok=True)


def start_sessions(spark: SparkSession, job: Behaviour) -> StreamingQuery:
    views = views_of(read_stream(spark, job.kafka, job.source), job.fields)
    if job.skip_bad:
        views = views.observe("views", f.count_if(~is_whole(views)).alias("unusable")).filter(is_whole(views))
    else:
        views = refused(views)
    return to_parquet(sessions_of(views, job.times), job, "sessions", "date")


def start_pairs(spark: SparkSession, job: Behaviour) -> list[StreamingQuery]:
    """Both read the sessions for themselves: one tells each change of a window, one its end."""

    def counts() -> DataFrame:
        sessions = spark.readStream.schema(SESSIONS).parquet(job.folder("sessions"))
        return counted(pairs_of(sessions, job.times, job.ahead), job.times)

    started = [to_parquet(counts(), job, "pairs")]
    if job.result_topic is not None:
        writer = stream_writer(records_of(counts()), job.kafka, job.result_topic)
        started.append(started_as(writer.outputMode("update"), job, "topic"))
    return started


def to_parquet(rows: DataFrame, job: Behaviour, name: str, *by: str) -> StreamingQuery:
    writer = rows.writeStream.format("parquet").option("path", job.folder(name)).outputMode("append")
    return started_as(writer.partitionBy(*by) if by else writer, job, name)


def started_as(writer: DataStreamWriter, job: Behaviour, name: str) -> StreamingQuery:
    writer = writer.option("checkpointLocation", job.checkpoint(name)).queryName(name)
    return writer.trigger(**job.stream.trigger_arguments()).start()


def run_queries(queries: Sequence[StreamingQuery], job: Behaviour, stopping: Stopping | None = None) -> None:
    """Until all have ended, or were asked to; one that fails stops the others, whose batch comes again."""
    if stopping is not None:
        stopping.install()
        stopping.install_in_jvm(spark_of(queries[0]))
        stopping.following = True
    told = [(query, progress_of(query, job)) for query in queries]
    try:
        follow_all(told, stopping)
    except Exception as error:
        raise JobFailed(explain(error)) from error
    finally:
        if stopping is not None:
            stopping.following = False
        for query, progress in told:
            progress.look(query)
            query.stop()


def follow_all(told: Sequence[tuple[StreamingQuery, Progress]], stopping: Stopping | None) -> None:
    while any(query.isActive for query, _ in told):
        for query, progress in told:
            query.awaitTermination(LOOK_EVERY_S / len(told))
            progress.look(query)
        if stopping is not None and stopping.asked:
            for query, _ in told:
                end_after_batch(query, stopping)
    for query, _ in told:
        query.awaitTermination()


def progress_of(query: StreamingQuery, job: Behaviour) -> Progress:
    """The file is of the query that reads the topic: its lag is what plots show."""
    file = job.stream.progress_file if query.name == "sessions" else None
    return Progress(file, lambda line: _log.info("%s %s", query.name, line))

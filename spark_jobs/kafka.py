"""Spark's Kafka source and sink with the jobs' options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.failures import ABOUT

SINK_COLUMNS = ("key", "value", "headers", "topic", "partition")


@dataclass(slots=True)
class Kafka:
    """A cluster: where it is, and the clients' settings, each with or without `kafka.` before its name."""

    bootstrap: str
    options: Mapping[str, str] = field(default_factory=dict)

    def spark_options(self) -> dict[str, str]:
        """As source and sink want them."""
        told = {f"kafka.{name.removeprefix('kafka.')}": value for name, value in self.options.items()}
        return {**told, "kafka.bootstrap.servers": self.bootstrap}


@dataclass(slots=True)
class Source:
    """What is read. Offsets: `earliest`, `latest`, JSON by topic and partition (-2 earliest, -1 latest),
    `timestamps:JSON`, or one time for all partitions (milliseconds since 1970, or ISO 8601)."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None  # instead of topics: a Java regular expression
    assign: str | None = None  # instead of topics: JSON, partitions by topic
    starting: str | None = None  # Spark's defaults: latest for streams, earliest for batches
    ending: str | None = None  # batches only
    max_offsets_per_trigger: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    no_record_at_time: str = "error"  # or latest: what a time behind the last record means
    headers: bool = True
    options: Mapping[str, str] = field(default_factory=dict)  # the source's other options

    def __str__(self) -> str:
        if self.pattern:
            return f"topics that match {self.pattern}"
        if self.assign:
            return f"partitions {self.assign}"
        return f"topic {', '.join(self.topics)}"

    def chosen(self) -> dict[str, str]:
        if self.pattern:
            return {"subscribePattern": self.pattern}
        return {"assign": self.assign} if self.assign else {"subscribe": ",".join(self.topics)}

    def spark_options(self, streaming: bool) -> dict[str, str]:
        made = {**self.chosen(), "failOnDataLoss": str(self.fail_on_data_loss).lower()}
        made["includeHeaders"] = str(self.headers).lower()
        if self.starting:
            made |= offsets("starting", self.starting)
            if any("imestamp" in name for name in made):
                made["startingOffsetsByTimestampStrategy"] = self.no_record_at_time
        if self.min_partitions:
            made["minPartitions"] = str(self.min_partitions)
        if streaming:
            if self.max_offsets_per_trigger:
                made["maxOffsetsPerTrigger"] = str(self.max_offsets_per_trigger)
        elif self.ending:
            made |= offsets("ending", self.ending)
        return {**made, **self.options}


def offsets(which: str, told: str) -> dict[str, str]:
    """The source's option for a place; `which` is starting or ending. Raises ValueError for what is none."""
    told = told.strip()
    if told.startswith("timestamps:"):
        return {f"{which}OffsetsByTimestamp": told.removeprefix("timestamps:")}
    if told.startswith("{") or told.lower() in ("earliest", "latest"):
        return {f"{which}Offsets": told if told.startswith("{") else told.lower()}
    return {f"{which}Timestamp": str(time_ms(told))}


def time_ms(told: str) -> int:
    """Milliseconds since 1970 of a number or of an ISO 8601 time (UTC where it names no zone)."""
    if re.fullmatch(r"\d+", told):
        return int(told)
    try:
        time = datetime.fromisoformat(told)
    except ValueError:
        raise ValueError(
            f"{told!r} is none of earliest, latest, JSON by topic and partition, timestamps:JSON, "
            "milliseconds since 1970, ISO 8601 time"
        ) from None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def read_stream(spark: SparkSession, kafka: Kafka, source: Source) -> DataFrame:
    """key, value, topic, partition, offset, timestamp, timestampType and headers, as they come in."""
    options = {**kafka.spark_options(), **source.spark_options(streaming=True)}
    remember(kafka, source)
    return spark.readStream.format("kafka").options(**options).load()


def read_batch(spark: SparkSession, kafka: Kafka, source: Source) -> DataFrame:
    """The same columns of a range."""
    options = {**kafka.spark_options(), **source.spark_options(streaming=False)}
    remember(kafka, source)
    return spark.read.format("kafka").options(**options).load()


def remember(kafka: Kafka, source: Source) -> None:
    """For errors that don't name what was read."""
    ABOUT.what, ABOUT.bootstrap = str(source), kafka.bootstrap


def sink_columns(frame: DataFrame) -> DataFrame:
    """Only what the sink takes; it refuses other columns."""
    return frame.select(*(name for name in SINK_COLUMNS if name in frame.columns))


def sink_options(kafka: Kafka, topic: str | None) -> dict[str, str]:
    return {**kafka.spark_options(), "includeHeaders": "true", **({"topic": topic} if topic else {})}


def write_batch(frame: DataFrame, kafka: Kafka, topic: str | None = None) -> None:
    """Writes records (columns key, value, headers, topic, partition); returns when all are acknowledged.

    At-least-once: a task that Spark repeats writes its records again.
    """
    sink_columns(frame).write.format("kafka").options(**sink_options(kafka, topic)).save()


def stream_writer(frame: DataFrame, kafka: Kafka, topic: str | None = None) -> DataStreamWriter:
    """A writer into a topic, without checkpoint, trigger and mode; at-least-once like `write_batch`."""
    return sink_columns(frame).writeStream.format("kafka").options(**sink_options(kafka, topic))

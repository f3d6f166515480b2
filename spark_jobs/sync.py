"""What `cdc_sync` does with each micro-batch: parse, refuse what can't be applied, then every sink in turn.

Spark's checkpoint advances when the batch returns, and it returns only when all sinks took it. A batch that
comes again (after a kill between two sinks, or before the checkpoint was written) finds its rows in the sinks
and changes nothing: each sink knows by offsets what it has.

Offsets order the events of a key only while its partition stays the same. A partition that was added to the
topic after the job began moves keys, so that a job that meets one ends rather than sort wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.changes import PoisonRecords, Refuse, Refused, Summary, latest, parse, refused_of, summarize
from spark_jobs.sinks.storage import storage_of

INITIAL_OFFSETS = "sources/0/0"  # in Spark's checkpoint: where the first batch began, by partition

# Writes records (key, value, headers) to the dead-letter topic.
DeadLetter = Callable[[DataFrame], None]


class Sink(Protocol):
    """Where current state is kept."""

    def problem(self) -> Column | None:
        """Why the sink will not take an event, null where nothing is known against it (see changes.parse)."""

    def write(self, topic: str, last: DataFrame, summary: Summary, refuse: Refuse) -> None:
        """Applies one event for each key, and calls `refuse` before it goes on without one."""


class OrderLost(RuntimeError):
    """A key's events are in several partitions."""


@dataclass(slots=True)
class Sync:
    """The function of foreachBatch. `failure` keeps what ended it: Spark passes on only its text."""

    topic: str
    checkpoint: str
    sinks: Sequence[Sink]
    dead_letter: DeadLetter | None = None
    failure: Exception | None = None
    refused: int = 0
    partitions: frozenset[int] | None = field(default=None, init=False)
    problem: Column | None = field(default=None, init=False)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        try:
            self.apply(batch)
        except Exception as error:
            self.failure = error
            raise

    def extra(self) -> str:
        """For the line of progress."""
        return f", {self.refused:,} refused" if self.refused else ""

    def apply(self, batch: DataFrame) -> None:
        if self.problem is None:
            found = [f.col("problem"), *(sink.problem() for sink in self.sinks)]
            self.problem = f.coalesce(*(each for each in found if each is not None))
        events = parse(batch).withColumn("problem", self.problem).persist()
        try:
            refuse = Refusing(self, batch)
            refuse(refused_of(events.where("problem IS NOT NULL").collect()))
            last = latest(events.where("problem IS NULL")).persist()
            try:
                summary = summarize(last)
                if summary.keys:
                    self.check_partitions(last, summary)
                    for sink in self.sinks:
                        sink.write(self.topic, last, summary, refuse)
            finally:
                last.unpersist()
        finally:
            events.unpersist()

    def check_partitions(self, last: DataFrame, summary: Summary) -> None:
        """Raises OrderLost where offsets are no longer the order of a key's events."""
        if summary.split is not None:
            key, one, other = summary.split
            raise OrderLost(
                f"topic {self.topic}: key {key} is in partitions {one} and {other}: the order of its changes "
                "is not known. Write a key to one partition."
            )
        if self.partitions is None:
            self.partitions = first_partitions(last.sparkSession, self.checkpoint, self.topic)
        highest = max(summary.ends)
        if self.partitions and highest > max(self.partitions):
            raise OrderLost(
                f"topic {self.topic}: partition {highest} was added after this job began (with "
                f"{len(self.partitions)}): keys moved, and the order of their changes is not known. Begin "
                "again with a new topic and a new checkpoint."
            )


class Refusing:
    """Collects a batch's refused records; without a dead-letter topic the first ones end the job."""

    def __init__(self, sync: Sync, batch: DataFrame) -> None:
        self.sync, self.batch = sync, batch
        self.places: dict[tuple[int, int], None] = {}

    def __call__(self, refused: list[Refused]) -> None:
        fresh = [each for each in refused if (each.partition, each.offset) not in self.places]
        if not fresh:
            return
        if self.sync.dead_letter is None:
            raise PoisonRecords(fresh)
        self.places.update(dict.fromkeys((each.partition, each.offset) for each in fresh))
        self.sync.dead_letter(letters(self.batch, fresh))
        self.sync.refused += len(fresh)


def letters(batch: DataFrame, refused: list[Refused]) -> DataFrame:
    """Refused records as they were, with headers that say where each was and why it was refused."""
    rows = [(each.partition, each.offset, each.reason) for each in refused]
    reasons = batch.sparkSession.createDataFrame(rows, "partition int, offset long, reason string")
    found = batch.join(f.broadcast(reasons), ["partition", "offset"])
    told = {"topic": "topic", "partition": "partition", "offset": "offset", "reason": "reason"}
    headers = f.array(
        *(
            f.struct(
                f.lit(f"cdc_sync.{name}").alias("key"),
                f.encode(f.col(column).cast("string"), "UTF-8").alias("value"),
            )
            for name, column in told.items()
        )
    )
    if "headers" in batch.columns:
        headers = f.concat(f.coalesce(f.col("headers"), f.array().cast(headers_type())), headers)
    return found.select("key", "value", headers.alias("headers"))


def headers_type() -> str:
    return "array<struct<key:string,value:binary>>"


def first_partitions(spark: SparkSession, checkpoint: str, topic: str) -> frozenset[int]:
    """The partitions that the topic had when the checkpoint was begun; empty where it doesn't say."""
    text = storage_of(spark, checkpoint).read(INITIAL_OFFSETS)
    if text is None:
        return frozenset()
    try:
        return frozenset(int(partition) for partition in json.loads(text[text.index("{") :]).get(topic, {}))
    except ValueError:
        return frozenset()

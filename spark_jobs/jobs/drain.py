"""A backlog copied to a topic with more partitions, so that more consumers can share it, in order per key.

Why the order holds. Spark reads one partition in one task (that is why --min-partitions is not offered), the
task writes in the order of the offsets through one idempotent producer, and the next batch begins when all
tasks of the last one have their acknowledgements. Records of a key come from one partition and go to one: the
producer's own, Java's murmur2 of the key modulo the number of partitions. That number is kept beside the
checkpoint: a partition added between two runs would move keys, so the job ends instead.

What a restart can repeat. Spark's sink is at-least-once: a batch that was killed is written again, from its
first offset, by every task. Each record's first copy is in order. --max-offsets-per-trigger bounds how much;
`audit` counts it. Nothing is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import click
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_jobs.audit.sides import ORIGIN_OFFSET, ORIGIN_PARTITION, ORIGIN_TIMESTAMP
from spark_jobs.failures import JobFailed
from spark_jobs.kafka import Kafka, Source, read_stream, stream_writer
from spark_jobs.options import Stream, kafka_options, launch_options, pairs, stream_options
from spark_jobs.progress import Progress
from spark_jobs.running import Stopping, run_query
from spark_jobs.session import Launch, build_session, stop
from spark_jobs.sinks.storage import storage_of
from spark_jobs.topics import Topics

TIMES = 10
NOTE = "drain.json"
HEADERS = "array<struct<key:string,value:binary>>"
KEYLESS = ("spread", "source")

# settings that would let records of a key pass each other, or go elsewhere
UNORDERED: dict[str, Callable[[str], bool]] = {
    "enable.idempotence": lambda value: value.lower() == "false",
    "max.in.flight.requests.per.connection": lambda value: int(value) > 5,
    "partitioner.class": lambda value: True,
    "partitioner.ignore.keys": lambda value: value.lower() == "true",
    "acks": lambda value: value not in ("all", "-1"),
    "retries": lambda value: int(value) == 0,
}


@dataclass(slots=True)
class Drain:
    """What is copied where, and how."""

    kafka: Kafka
    topic: str
    target: str
    stream: Stream
    to: Kafka | None = None  # another cluster
    partitions: int | None = None
    replication: int = -1
    target_config: Mapping[str, str] = field(default_factory=dict)
    starting: str = "earliest"
    max_offsets: int | None = None
    fail_on_data_loss: bool = True
    keyless: str = "spread"
    origin: bool = False
    committed: bool = True

    @property
    def destination(self) -> Kafka:
        return self.to or self.kafka


def shaped(rows: DataFrame, keyless: str, partitions: int, origin: bool) -> DataFrame:
    """What the sink writes. A null partition leaves the choice to the producer."""
    partition: Column = f.lit(None).cast("int")
    if keyless == "source":
        own = (f.col("partition") % f.lit(partitions)).cast("int")
        partition = f.when(f.col("key").isNull(), own).otherwise(partition)
    headers: Column = f.col("headers")
    if origin:
        place = f.array(
            header(ORIGIN_PARTITION, f.col("partition")),
            header(ORIGIN_OFFSET, f.col("offset")),
            header(ORIGIN_TIMESTAMP, f.unix_millis("timestamp")),
        )
        headers = f.concat(f.coalesce(headers, f.array().cast(HEADERS)), place)
    return rows.select("key", "value", headers.alias("headers"), partition.alias("partition"))


def header(name: str, value: Column) -> Column:
    return f.struct(f.lit(name).alias("key"), f.encode(value.cast("string"), "UTF-8").alias("value"))


def refuse_unordered(settings: Mapping[str, str]) -> None:
    told = {name.removeprefix("kafka."): value for name, value in settings.items()}
    for name, wrong in UNORDERED.items():
        value = told.get(name)
        if value is not None and wrong(value):
            raise JobFailed(f"{name}={value} does not keep the order of a key's records: leave it out")


def prepare(spark: SparkSession, job: Drain) -> int:
    """Checks the source, creates or checks the target, and returns the target's number of partitions."""
    refuse_unordered(job.destination.options)
    if spark.conf.get("spark.speculation", "false") == "true":
        raise JobFailed("spark.speculation=true lets two tasks write the same partition at once: turn it off")
    if job.to is None and job.topic == job.target:
        raise JobFailed(f"topic {job.topic} can't be drained into itself")
    with Topics(spark, job.kafka.bootstrap, job.kafka.options) as topics:
        width = topics.partitions(job.topic)
    if width is None:
        raise JobFailed(f"topic {job.topic} does not exist on {job.kafka.bootstrap}")
    to = job.destination
    with Topics(spark, to.bootstrap, to.options) as topics:
        found = topics.partitions(job.target)
        if found is None:
            found = job.partitions or width * TIMES
            topics.create(job.target, found, job.replication, job.target_config)
            click.echo(f"topic {job.target} created with {found} partitions", err=True)
        elif job.partitions is not None and job.partitions != found:
            raise JobFailed(f"topic {job.target} has {found} partitions, not {job.partitions}")
    return remembered(spark, job, found)


def remembered(spark: SparkSession, job: Drain, partitions: int) -> int:
    """The width and name of the target stay what they were when the copy began."""
    storage = storage_of(spark, job.stream.checkpoint)
    now = {"source": job.topic, "target": job.target, "partitions": partitions}
    text = storage.read(NOTE)
    if text is None:
        storage.replace(NOTE, json.dumps(now))
    elif json.loads(text) != now:
        was = json.loads(text)
        raise JobFailed(
            f"checkpoint {job.stream.checkpoint} began a copy of {was['source']} to {was['target']} with "
            f"{was['partitions']} partitions; now it is {job.topic} to {job.target} with {partitions}. "
            "Keys would move. Begin anew with another target topic and checkpoint"
        )
    return partitions


def run(spark: SparkSession, job: Drain, stopping: Stopping | None = None) -> None:
    """Copies until the backlog is done (available-now), or until it is told to stop."""
    partitions = prepare(spark, job)
    source = Source(
        (job.topic,),
        starting=job.starting,
        max_offsets_per_trigger=job.max_offsets,
        fail_on_data_loss=job.fail_on_data_loss,
    )
    level = "read_committed" if job.committed else "read_uncommitted"
    rows = read_stream(spark, with_defaults(job.kafka, {"isolation.level": level}), source)
    to = with_defaults(job.destination, {"enable.idempotence": "true", "acks": "all"})
    writer = stream_writer(shaped(rows, job.keyless, partitions, job.origin), to, job.target)
    writer = writer.option("checkpointLocation", job.stream.checkpoint)
    query = writer.trigger(**job.stream.trigger_arguments()).start()
    run_query(query, Progress(job.stream.progress_file), stopping)


def with_defaults(kafka: Kafka, settings: Mapping[str, str]) -> Kafka:
    return Kafka(kafka.bootstrap, {**settings, **kafka.options})


@click.command("drain", context_settings={"show_default": True, "default_map": {"trigger": "available-now"}})
@kafka_options
@click.option("--topic", required=True, help="The topic to copy.")
@click.option("--to", "target", required=True, metavar="TOPIC", help="Where to; created if it is not there.")
@click.option("--to-bootstrap", metavar="HOST:PORT,...", help="Another cluster to copy to.")
@click.option("--to-kafka-option", multiple=True, metavar="KEY=VALUE", help="Settings for it. Repeatable.")
@click.option("--partitions", type=click.IntRange(min=1), help="Of the target; else ten times the source's.")
@click.option("--replication-factor", default=-1, help="Of a created target; -1 is the cluster's default.")
@click.option("--topic-config", multiple=True, metavar="KEY=VALUE", help="Of a created target. Repeatable.")
@click.option("--starting-offsets", default="earliest", help="Where a new copy begins.")
@click.option(
    "--max-offsets-per-trigger",
    type=click.IntRange(min=1),
    default=1_000_000,
    help="Records of a batch: what a restart may repeat, at most.",
)
@click.option("--fail-on-data-loss/--no-fail-on-data-loss", default=True, help="End where offsets are gone.")
@click.option(
    "--keyless",
    type=click.Choice(KEYLESS),
    default="spread",
    help="Records without a key: over all partitions, or in order in the one of the source's number.",
)
@click.option("--origin", is_flag=True, help="Headers with partition, offset and timestamp in the source.")
@click.option(
    "--read-uncommitted", is_flag=True, help="Copy records of open and aborted transactions as well."
)
@stream_options
@launch_options
def command(
    kafka: Kafka,
    topic: str,
    target: str,
    to_bootstrap: str | None,
    to_kafka_option: tuple[str, ...],
    partitions: int | None,
    replication_factor: int,
    topic_config: tuple[str, ...],
    starting_offsets: str,
    max_offsets_per_trigger: int,
    fail_on_data_loss: bool,
    keyless: str,
    origin: bool,
    read_uncommitted: bool,
    stream: Stream,
    launch: Launch,
) -> None:
    """Copy a topic's backlog to one with ten times the partitions, in order per key.

    Values, keys and headers stay as they are; partitions are chosen as Java's producers do (murmur2). Spark's
    sink can't set timestamps: a copy has the time at which it was written, and --origin keeps the source's in
    the header origin.timestamp (ms).

    \b
    At-least-once: after a kill the batch that ran is written again, so up to --max-offsets-per-trigger
    records come twice; each key's first copies are in order, and nothing is lost. To see it:
      python -m spark_jobs audit --bootstrap localhost:9092 --left orders --right orders-wide --allow-repeats

    \b
    Examples:
      python -m spark_jobs drain --bootstrap localhost:9092 --topic orders --to orders-wide --checkpoint ckpt
      spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 spark_jobs/__main__.py drain \\
        --bootstrap localhost:9092 --topic orders --to orders-wide --checkpoint hdfs:///ckpt/orders
    """
    to = None
    if to_bootstrap or to_kafka_option:
        to = Kafka(to_bootstrap or kafka.bootstrap, pairs(to_kafka_option, "--to-kafka-option"))
    job = Drain(
        kafka,
        topic,
        target,
        stream,
        to,
        partitions,
        replication_factor,
        pairs(topic_config, "--topic-config"),
        starting_offsets,
        max_offsets_per_trigger,
        fail_on_data_loss,
        keyless,
        origin,
        not read_uncommitted,
    )
    stopping = Stopping()
    spark = build_session("drain", launch)
    try:
        run(spark, job, stopping)
    finally:
        stop(spark)

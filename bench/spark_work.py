"""What Spark does in the parts `spark` and `archive`, in processes of their own with a fresh `local[2]`.

The session is started, and has run one small job, before a clock starts. Every figure comes with the CPU time
that the broker and Spark (its driver's process and the JVM) took meanwhile.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import machine
from tests.support.jars import spark_kafka_jars
from tests.support.java import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
SLACK = 32  # Spark rounds each partition's share of a batch down, a few records would be left over


def three_jobs(**arguments: Any) -> dict[str, dict[str, float]]:
    """`run_jobs` in a session and a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as folder:
        spark = session(Path(folder))
        figures = run_jobs(spark, Path(folder), **arguments)
        spark.stop()
    return figures


def run_jobs(
    spark: SparkSession,
    folder: Path,
    bootstrap: str,
    broker_pid: int | None,
    source: str,
    target: str,
    records: int,
    record_bytes: int,
    batches: int,
) -> dict[str, dict[str, float]]:
    """Write the records, read and count them, copy them in so many batches: the figures of each.

    Raises RuntimeError where what was read is not what was written.
    """

    def write() -> None:
        rows = spark.range(records, numPartitions=CORES).selectExpr(
            f"cast(lpad(cast(id as string), {record_bytes}, 'abcdefgh') as binary) as value"
        )
        writer = rows.write.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        writer.option("topic", source).save()

    def read() -> None:
        from pyspark.sql import functions as f

        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        seen = reader.option("subscribe", source).load()
        found = seen.agg(f.count("*").alias("all"), f.countDistinct("value").alias("distinct")).first()
        if found is None or (found["all"], found["distinct"]) != (records, records):
            raise RuntimeError(f"read {found}, {records} distinct records were written")

    def copy() -> None:
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        reader = reader.option("subscribe", source).option("startingOffsets", "earliest")
        seen = reader.option("maxOffsetsPerTrigger", -(-records // batches) + SLACK).load()
        writer = seen.select("key", "value").writeStream.format("kafka")
        writer = writer.option("kafka.bootstrap.servers", bootstrap).option("topic", target)
        query = writer.option("checkpointLocation", f"{folder}/copy").trigger(availableNow=True).start()
        query.awaitTermination()
        sizes = [progress["numInputRows"] for progress in query.recentProgress]
        done = [size for size in sizes if size]
        if len(done) != batches or sum(done) != records:
            raise RuntimeError(f"copied in batches of {sizes}, not {records} records in {batches}")

    jobs = {"write": write, "read": read, "copy": copy}
    return {name: timed(job, broker_pid) for name, job in jobs.items()}


def archive(**arguments: Any) -> dict[str, float]:
    """`run_archive` in a session and a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-archive-") as folder:
        spark = session(Path(folder))
        figures = run_archive(spark, Path(folder), **arguments)
        spark.stop()
    return figures


def run_archive(
    spark: SparkSession,
    folder: Path,
    bootstrap: str,
    broker_pid: int | None,
    topic: str,
    records: int,
    batches: int,
) -> dict[str, float]:
    """The job `archive` over what the topic holds. Raises RuntimeError where the files hold anything else."""
    from spark_jobs.jobs import archive as archiving
    from spark_jobs.kafka import Kafka, Source
    from spark_jobs.options import Stream

    target = f"{folder}/archive"
    limit = -(-records // batches) + SLACK
    source = Source(topics=(topic,), starting="earliest", max_offsets_per_trigger=limit)
    stream = Stream(checkpoint=f"{folder}/checkpoint", trigger="available-now")
    figures = timed(
        lambda: archiving.run(spark, Kafka(bootstrap), source, target, stream),
        broker_pid,
    )
    stored = spark.read.parquet(target).selectExpr("count(*)", "count(distinct partition, offset)").first()
    if stored is None or tuple(stored) != (records, records):
        raise RuntimeError(f"the archive holds {stored}, the topic {records} records")
    return figures


def timed(work: Callable[[], None], broker_pid: int | None) -> dict[str, float]:
    """Seconds on the clock, and of CPU: the broker's (0 where it cannot be seen) and Spark's."""
    before = cpu(broker_pid), machine.cpu_seconds(os.getpid())
    start = time.perf_counter()
    work()
    took = time.perf_counter() - start
    return {
        "seconds": took,
        "broker_cpu": cpu(broker_pid) - before[0],
        "spark_cpu": machine.cpu_seconds(os.getpid()) - before[1],
    }


def cpu(pid: int | None) -> float:
    return machine.cpu_seconds(pid) if pid is not None else 0.0


def session(folder: Path) -> SparkSession:
    """Spark with its Kafka connector, quiet, with every file below `folder`; it has run a job already."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("JAVA_HOME", str(Path(java()).resolve().parent.parent))
    settings = {
        "spark.jars": ",".join(str(jar) for jar in sorted(spark_kafka_jars().glob("*.jar"))),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(CORES),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder.master(f"local[{CORES}]").appName("bench")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(10).selectExpr("sum(id)").collect()
    return spark

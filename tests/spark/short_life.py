"""Archives Spark's classes: `make` has one Spark do in short what most tests do, and leave them at its end.

It is a process of its own (`python -m tests.spark.short_life FLAGS`), which waits for its JVM's end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.spark.quick import JVM_FLAGS, classes, start_session
from tests.spark.topics import Running, batch, fresh, numbered, stream, write
from tests.support.ottla_process import CHECKOUT, OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 300.0


def make() -> None:
    """Makes the archive, unless there is one."""

    def live(flags: tuple[str, ...]) -> bool:
        command = [sys.executable, "-m", "tests.spark.short_life", *JVM_FLAGS, *flags]
        try:
            done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    classes().make(live)


def use(spark: SparkSession, folder: Path) -> None:
    """Topics, files and streams, read and written."""
    with OttlaProcess() as broker:
        topic, copy = fresh(broker, 2), fresh(broker, 2)
        write(broker, topic, numbered([0, 1], 0, 10))
        rows = batch(spark, broker, subscribe=topic)
        rows.withColumn("date", rows["timestamp"].cast("date")).write.partitionBy("date").parquet(
            str(folder / "batch")
        )
        spark.read.parquet(str(folder / "batch")).groupBy("partition").count().orderBy("partition").collect()
        sink = rows.select("key", "value").write.format("kafka").option("topic", copy)
        sink.option("kafka.bootstrap.servers", broker.bootstrap_servers).save()
        seen = stream(spark, broker, subscribe=copy, startingOffsets="earliest")
        with Running(seen, folder / "running", availableNow=True) as running:
            running.finish()
        files = seen.writeStream.format("parquet").option("path", str(folder / "stream"))
        files = files.option("checkpointLocation", str(folder / "checkpoint"))
        files.trigger(availableNow=True).start().awaitTermination()


def main(flags: list[str]) -> int:
    """The exit code of the JVM."""
    from pyspark import SparkContext

    with tempfile.TemporaryDirectory() as folder:
        spark = start_session(Path(folder), " ".join(flags))
        jvm: Any = SparkContext._gateway.proc
        use(spark, Path(folder))
        spark.stop()
        jvm.stdin.close()  # its sign to end
        return int(jvm.wait())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

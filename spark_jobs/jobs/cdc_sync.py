"""Change events of a table to its current state elsewhere: a MariaDB table, Parquet, a search index.

Reads one topic of change events (see changes.py for their form; `binlog` writes such). Each batch goes to
every sink that is named, and only then does Spark's checkpoint advance. A restart can repeat a batch, which
changes nothing: see sync.py, and each sink for how it knows what it has.

Records that can't be applied end the job with topic, partition, offset and reason, before the sink that
refuses them has gone past them; with --dead-letter they are written to that topic instead (at least once),
and the batch goes on without them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import click
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.changes import PoisonRecords
from spark_jobs.failures import JobFailed
from spark_jobs.kafka import Kafka, Source, read_stream, write_batch
from spark_jobs.options import Stream, kafka_options, launch_options, source_options, stream_options
from spark_jobs.progress import Progress
from spark_jobs.running import Stopping, run_query
from spark_jobs.session import Launch, build_session, stop
from spark_jobs.sinks.jdbc import CONNECTOR, TableRefused, Target
from spark_jobs.sinks.manifest import ManifestRefused, ManifestSink
from spark_jobs.sinks.mariadb import MariadbSink
from spark_jobs.sinks.search import Index, SearchRefused, SearchSink
from spark_jobs.sync import DeadLetter, OrderLost, Sink, Sync

TOLD = (PoisonRecords, OrderLost, TableRefused, ManifestRefused, SearchRefused)


@dataclass(slots=True, frozen=True)
class Parquet:
    """Where generations of Parquet files go, and how."""

    path: str
    schema: str | None = None
    buckets: int = 4
    grace_s: float = 600.0


@dataclass(slots=True, frozen=True)
class Targets:
    """The sinks; at least one. `epoch`: how often the topic's offsets began anew."""

    table: Target | None = None
    parquet: Parquet | None = None
    index: Index | None = None
    dead_letter: str | None = None
    epoch: int = 0

    def sinks(self, spark: SparkSession) -> list[Sink]:
        found: list[Sink] = []
        if self.table is not None:
            found.append(MariadbSink(spark, self.table, self.epoch))
        if self.index is not None:
            found.append(SearchSink(self.index, self.epoch))
        if self.parquet is not None:
            each = self.parquet
            found.append(ManifestSink(spark, each.path, each.schema, each.buckets, each.grace_s, self.epoch))
        return found


def run(
    spark: SparkSession, kafka: Kafka, source: Source, targets: Targets, stream: Stream, stopping: Stopping
) -> None:
    """Follows the topic until it is told to stop. Raises JobFailed with the line for the user."""
    if len(source.topics) != 1:
        raise JobFailed("cdc_sync reads one topic, named by --topic: one table's changes are in one")
    if "continuous" in stream.trigger_arguments():
        raise JobFailed("cdc_sync works in batches: Spark's continuous trigger has none")
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)  # the line for the user says it
    try:
        sync = Sync(
            source.topics[0],
            stream.checkpoint,
            targets.sinks(spark),
            dead_letter_to(kafka, targets.dead_letter),
        )
        records = read_stream(spark, kafka, source)
        writer = records.writeStream.foreachBatch(sync).option("checkpointLocation", stream.checkpoint)
        if trigger := stream.trigger_arguments():
            writer = writer.trigger(**trigger)
        query = writer.queryName("cdc_sync").start()
    except TOLD as error:
        raise JobFailed(str(error)) from error
    try:
        run_query(query, Progress(stream.progress_file, extra=sync.extra), stopping)
    except JobFailed as error:
        if isinstance(sync.failure, TOLD):
            raise JobFailed(str(sync.failure)) from error
        raise


def dead_letter_to(kafka: Kafka, topic: str | None) -> DeadLetter | None:
    if topic is None:
        return None

    def write(letters: DataFrame) -> None:
        write_batch(letters, kafka, topic)

    return write


@click.command("cdc_sync", context_settings={"show_default": True})
@kafka_options
@source_options
@click.option("--mariadb-url", metavar="URL", help="Table sink: jdbc:mariadb://HOST:PORT/DATABASE.")
@click.option("--mariadb-table", metavar="NAME", help="The table, which exists with the source's columns.")
@click.option("--mariadb-user", default="root", help="Its user.")
@click.option("--mariadb-password", envvar="MARIADB_PASSWORD", default="", help="Better in MARIADB_PASSWORD.")
@click.option(
    "--parquet", metavar="DIR", help="Parquet sink: a folder of its own; readers take manifest.json."
)
@click.option(
    "--parquet-schema", metavar="DDL", help="Columns and types, 'id INT, ...'; else all are STRING."
)
@click.option("--parquet-buckets", default=4, help="Parts of the state: a batch rewrites those it touches.")
@click.option("--parquet-grace", default=600.0, help="Seconds that files out of use are kept for readers.")
@click.option("--search-url", metavar="URL", help="Search sink: http(s)://[USER:PASSWORD@]HOST[:PORT].")
@click.option("--search-index", metavar="NAME", help="The index.")
@click.option("--search-ca", metavar="FILE", help="Certificates to check the index's with.")
@click.option("--search-give-up", default=300.0, help="Seconds without any success until the job ends.")
@click.option("--bulk-bytes", default=5 << 20, help="Largest bulk request.")
@click.option("--bulk-documents", default=2000, help="Most documents in one.")
@click.option(
    "--dead-letter", metavar="TOPIC", help="Where records go that can't be applied; else they end the job."
)
@click.option(
    "--topic-epoch", default=0, help="Raise by one, with a new checkpoint, when the topic was made anew."
)
@stream_options
@launch_options
def command(
    kafka: Kafka,
    source: Source,
    stream: Stream,
    launch: Launch,
    mariadb_url: str | None,
    mariadb_table: str | None,
    mariadb_user: str,
    mariadb_password: str,
    parquet: str | None,
    parquet_schema: str | None,
    parquet_buckets: int,
    parquet_grace: float,
    search_url: str | None,
    search_index: str | None,
    search_ca: str | None,
    search_give_up: float,
    bulk_bytes: int,
    bulk_documents: int,
    dead_letter: str | None,
    topic_epoch: int,
) -> None:
    """Keep a table's current state elsewhere, from its change events.

    A batch is applied to every sink that is named, and only then counts as read. A restart repeats at most
    one batch, which changes nothing. MariaDB's driver is fetched with the Kafka connector, unless --jars has
    both.

    \b
    Examples:
      python -m spark_jobs cdc_sync --bootstrap localhost:9092 --topic customers --checkpoint /data/cdc/ck \\
        --mariadb-url jdbc:mariadb://localhost:3306/copy --mariadb-table customers \\
        --parquet /data/cdc/customers --search-url http://localhost:9200 --search-index customers
    """
    if (mariadb_url is None) != (mariadb_table is None):
        raise click.UsageError("--mariadb-url and --mariadb-table belong together")
    if (search_url is None) != (search_index is None):
        raise click.UsageError("--search-url and --search-index belong together")
    table = index = folder = None
    if mariadb_url is not None and mariadb_table is not None:
        table = Target(mariadb_url, mariadb_user, mariadb_password, mariadb_table)
        if launch.jars is None:
            launch = replace(launch, packages=(*launch.packages, CONNECTOR))
    if search_url is not None and search_index is not None:
        index = Index(
            search_url, search_index, bulk_bytes, bulk_documents, give_up_s=search_give_up, ca_file=search_ca
        )
    if parquet is not None:
        folder = Parquet(parquet, parquet_schema, parquet_buckets, parquet_grace)
    if table is None and index is None and folder is None:
        raise click.UsageError("name a sink: --mariadb-url, --parquet or --search-url")
    stopping = Stopping()
    spark = build_session("cdc_sync", launch)
    try:
        targets = Targets(table, folder, index, dead_letter, topic_epoch)
        run(spark, kafka, source, targets, stream, stopping)
    finally:
        stop(spark)

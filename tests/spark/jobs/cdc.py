"""What the tests of cdc_sync share: topics with change events, a run of the job in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.mariadb_process import MariadbProcess
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.sync import Sink, Sync

PARTITIONS = 3
ITEMS = "(id INT PRIMARY KEY, name VARCHAR(20), n INT)"


def item(number: int, **values: Any) -> tuple[dict[str, int], dict[str, Any]]:
    return {"id": number}, {"op": "u", "before": None, "after": {"id": number, **values}}


def gone(number: int) -> tuple[dict[str, int], dict[str, Any]]:
    return {"id": number}, {"op": "d", "before": {"id": number}, "after": None}


GOOD = [item(1, name="a"), item(2, name="b"), gone(2), item(3, name="c", n=7)]


def target(server: MariadbProcess, table: str) -> Any:
    from spark_jobs.sinks.jdbc import Target

    return Target(f"jdbc:mariadb://{server.host}:{server.port}/copy", "root", "", table)


def sync_of(topic: str, checkpoint: Path, *sinks: Sink, **more: Any) -> Sync:
    from spark_jobs.sync import Sync

    return Sync(topic, str(checkpoint), sinks, **more)


def run(spark: SparkSession, broker: OttlaProcess, sync: Sync, per_batch: int | None = None) -> None:
    """Everything that is in the topic now, in batches; raises what ended a batch."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    reader = reader.option("subscribe", sync.topic).option("startingOffsets", "earliest")
    reader = reader.option("includeHeaders", "true")
    if per_batch:
        reader = reader.option("maxOffsetsPerTrigger", per_batch)
    writer = reader.load().writeStream.foreachBatch(sync).option("checkpointLocation", sync.checkpoint)
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except Exception as error:
        raise sync.failure or error from error


def create(broker: OttlaProcess, topic: str, partitions: int) -> None:
    """Makes a topic, unless it is there."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    if topic not in admin.list_topics(timeout=60).topics:
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(60)


def send(broker: OttlaProcess, topic: str, *events: tuple[Any, Any], partition: int = 0) -> None:
    """Records (key, value) into one partition of a topic, as JSON where they are not bytes already."""
    create(broker, topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value in events:
        producer.produce(topic, key=raw(key), value=raw(value), partition=partition)
    assert producer.flush(60) == 0


def raw(part: Any) -> bytes | None:
    """A key or value as bytes: JSON, unless it is bytes already, or None."""
    return part if isinstance(part, (bytes, type(None))) else json.dumps(part).encode()

"""What Spark says when records or a topic are gone or the broker refuses; what it does if it may lose data.

Spark knows no topic ids: to it a topic that was made again is one whose offsets were changed.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.topics import (
    Broker,
    Place,
    Running,
    batch,
    by_topic,
    create,
    delete,
    delete_records,
    fresh,
    numbered,
    places,
    places_read,
    stream,
    write,
)
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LOST = "Some data may have been lost"
MAY_LOSE = {"failOnDataLoss": "false"}
# Seen once: to Kafka's admin client, which then says so after a minute, the broker was gone with the topic.
DELETED = {
    OttlaProcess: "UnknownTopicOrPartitionException",
    KafkaProcess: r"UnknownTopicOrPartitionException|TimeoutException: .*Call: listOffsets",
}
# Spark asks for what is behind the end for so long, and for what is there no longer than that
IMPATIENT = {"kafkaConsumer.pollTimeoutMs": "10000"}


def read_now(spark: SparkSession, broker: Broker, checkpoint: Path, topic: str, **options: object) -> Running:
    """Everything that is there now, as a stream with this checkpoint; the caller asks how it ended."""
    seen = stream(spark, broker, subscribe=topic, startingOffsets="earliest", **options)
    return Running(seen, checkpoint, availableNow=True)


def test_records_deleted_before_they_were_read(
    spark: SparkSession, either_broker: Broker, tmp_path: Path
) -> None:
    """The query is at offset 10 and the log begins at 15: an error that names it, or what is left."""
    topic = fresh(either_broker, 1)
    write(either_broker, topic, numbered([0], 0, 10))
    with read_now(spark, either_broker, tmp_path, topic) as first:
        first.finish()
    write(either_broker, topic, numbered([0], 10, 20))
    delete_records(either_broker, topic, {0: 15})
    with read_now(spark, either_broker, tmp_path, topic) as strict:
        told = strict.failure()
    assert LOST in told
    assert f"Could not read records in offset [10, 20) for topic partition {topic}-0" in told
    with read_now(spark, either_broker, tmp_path, topic, **MAY_LOSE) as lenient:
        lenient.finish()
    assert lenient.seen == places(topic, {0: (15, 20)})


def test_a_topic_deleted_and_made_again(spark: SparkSession, either_broker: Broker, tmp_path: Path) -> None:
    """The new one is shorter than what was read: an error, or the query goes on at the new one's end."""
    topic = fresh(either_broker, 1)
    write(either_broker, topic, numbered([0], 0, 10))
    with read_now(spark, either_broker, tmp_path, topic) as first:
        first.finish()
    delete(either_broker, topic)
    create(either_broker, topic, 1)
    write(either_broker, topic, numbered([0], 0, 4))
    with read_now(spark, either_broker, tmp_path, topic) as strict:
        told = strict.failure()
    assert LOST in told
    assert f"{topic}-0 offset was changed from 10 to 4" in told
    with read_now(spark, either_broker, tmp_path, topic, **MAY_LOSE) as lenient:
        lenient.finish()
    assert lenient.seen == []
    write(either_broker, topic, numbered([0], 4, 6))
    with read_now(spark, either_broker, tmp_path, topic, **MAY_LOSE) as later:
        later.finish()
    assert later.seen == places(topic, {0: (4, 6)})


def test_a_topic_made_again_under_a_running_query(
    spark: SparkSession, either_broker: Broker, tmp_path: Path
) -> None:
    """Spark goes on at the offset it had: the new topic's first ten records count as read, the rest comes."""
    topic = fresh(either_broker, 1)
    write(either_broker, topic, numbered([0], 0, 10))
    seen = stream(spark, either_broker, subscribe=topic, startingOffsets="earliest", **MAY_LOSE)
    with Running(seen, tmp_path, held=True) as query:
        query.wait_for(places(topic, {0: (0, 10)}))
        delete(either_broker, topic)
        create(either_broker, topic, 1)
        write(either_broker, topic, numbered([0], 0, 15))
        query.pass_on()  # it has not asked for offsets meanwhile, however long that took
        query.wait_for(places(topic, {0: (0, 15)}))


def test_a_topic_deleted_under_a_running_query(
    spark: SparkSession, either_broker: Broker, tmp_path: Path
) -> None:
    """The query ends with the broker's word for it, whether it may lose data or not."""
    topics = [fresh(either_broker, 1), fresh(either_broker, 1)]
    options = {"subscribe": ",".join(topics), "startingOffsets": "earliest", "fetchOffset.numRetries": 1}
    strict = Running(stream(spark, either_broker, **options), tmp_path / "strict")
    lenient = Running(stream(spark, either_broker, **options, **MAY_LOSE), tmp_path / "lenient")
    with strict, lenient:
        expected = sorted(place for topic in topics for place in places(topic, {0: (0, 5)}))
        for topic in topics:
            write(either_broker, topic, numbered([0], 0, 5))
        for query in (strict, lenient):
            query.wait_for(expected)
        delete(either_broker, topics[0])
        for query in (strict, lenient):
            assert re.search(DELETED[type(either_broker)], query.failure())


def test_a_topic_that_does_not_exist(spark: SparkSession, either_broker: Broker) -> None:
    """Spark's source makes no topics; the sink makes them where the broker allows it."""
    missing = batch(spark, either_broker, subscribe="spark-nowhere", **{"fetchOffset.numRetries": 1})
    with pytest.raises(Exception, match="UnknownTopicOrPartitionException"):
        places_read(missing)


def test_offsets_behind_the_end(spark: SparkSession, either_broker: Broker) -> None:
    """Asked for 30 records of 10: an error that names the range, or the 10."""
    topic = fresh(either_broker, 1)
    write(either_broker, topic, numbered([0], 0, 10))
    options = {"subscribe": topic, "endingOffsets": by_topic(topic, {0: 30}), **IMPATIENT}

    def read(more: dict[str, str]) -> list[Place]:
        return places_read(batch(spark, either_broker, **options, **more))

    with ThreadPoolExecutor(2) as pool:  # so that both wait at the same time
        strict, lenient = pool.submit(read, {}), pool.submit(read, MAY_LOSE)
    with pytest.raises(Exception, match=LOST) as refused:
        strict.result()
    assert f"[10, 30) for topic partition {topic}-0" in str(refused.value)
    assert lenient.result() == places(topic, {0: (0, 10)})


@pytest.mark.parametrize(
    ("key", "value", "refusal"),
    [
        ("'k'", "repeat('x', 2000)", "RecordTooLargeException"),
        ("null", "'x'", "InvalidRecordException"),
    ],
)
def test_a_record_that_the_broker_refuses(
    spark: SparkSession, either_broker: Broker, key: str, value: str, refusal: str
) -> None:
    """Too large, and without a key on a compacted topic: the job fails with the broker's reason."""
    topic = fresh(either_broker, 1, {"max.message.bytes": "1000", "cleanup.policy": "compact"})
    one = spark.range(1, numPartitions=1)
    one = one.selectExpr(f"cast({key} as binary) as key", f"cast({value} as binary) as value")
    sink = one.write.format("kafka").option("kafka.bootstrap.servers", either_broker.bootstrap_servers)
    with pytest.raises(Exception, match=refusal):
        sink.option("topic", topic).save()
    assert places_read(batch(spark, either_broker, subscribe=topic)) == []

"""Topics for Spark's source to read, made and written by confluent-kafka, and what Spark says of them."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import DataStreamReader, StreamingQuery

Broker = OttlaProcess | KafkaProcess
Place = tuple[str, int, int]  # topic, partition, offset

TIMEOUT_S = 180
_numbers = itertools.count()


class Record(NamedTuple):
    """A record to write; it has the offset of its turn in its partition."""

    partition: int
    value: bytes
    timestamp_ms: int = 0
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers})


def create(broker: Broker, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
    """A topic of this name that keeps records of any age; returns when a client can see it whole."""
    client = admin(broker)
    topic = NewTopic(name, partitions, 1, config={"retention.ms": "-1", **(config or {})})
    client.create_topics([topic])[name].result(TIMEOUT_S)
    wait_for_partitions(broker, name, partitions)


def wait_for_partitions(broker: Broker, name: str, partitions: int) -> None:
    client = admin(broker)

    def complete() -> bool:
        told = client.list_topics(name, timeout=TIMEOUT_S).topics[name]
        return len(told.partitions) == partitions and all(p.leader >= 0 for p in told.partitions.values())

    wait_until(complete, f"{name} to have {partitions} partitions")


def fresh(
    broker: Broker, partitions: int, config: Mapping[str, str] | None = None, stem: str = "spark"
) -> str:
    """A new topic under a name that nobody has had."""
    name = f"{stem}-{next(_numbers)}"
    create(broker, name, partitions, config)
    return name


def delete(broker: Broker, name: str) -> None:
    """Returns when a client no longer sees the topic."""
    client = admin(broker)
    client.delete_topics([name])[name].result(TIMEOUT_S)
    wait_until(lambda: name not in client.list_topics(timeout=TIMEOUT_S).topics, f"{name} to be gone")


def delete_records(broker: Broker, topic: str, before: Mapping[int, int]) -> None:
    """Remove all records below the offsets."""
    asked = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
    client = admin(broker)  # has to live until it is answered
    for future in client.delete_records(asked).values():
        future.result(TIMEOUT_S)


def add_partitions(broker: Broker, topic: str, total: int) -> None:
    client = admin(broker)
    client.create_partitions([NewPartitions(topic, total)])[topic].result(TIMEOUT_S)
    wait_for_partitions(broker, topic, total)


def write(broker: Broker, topic: str, records: Iterable[Record], **config: object) -> None:
    """Write the records and wait for all acknowledgements."""
    problems: list[object] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0, **config})
    for each in records:
        producer.produce(
            topic,
            each.value,
            each.key,
            each.partition,
            on_delivery=lambda error, _: problems.append(error) if error is not None else None,
            timestamp=each.timestamp_ms,
            headers=list(each.headers),
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert problems == []


def numbered(partitions: Sequence[int], start: int, stop: int) -> list[Record]:
    """Records of values `p-i` on each of the partitions, i from start until stop."""
    return [Record(p, b"%d-%d" % (p, i), key=b"%d" % i) for i in range(start, stop) for p in partitions]


def places(topic: str, ranges: Mapping[int, tuple[int, int]]) -> list[Place]:
    """Every place between each partition's two offsets, in order."""
    return [(topic, p, offset) for p, (start, end) in sorted(ranges.items()) for offset in range(start, end)]


def by_topic(topic: str, values: Mapping[int, int]) -> str:
    """Offsets or times as the source's options want them."""
    return json.dumps({topic: {str(partition): value for partition, value in values.items()}})


def batch(spark: SparkSession, broker: Broker, **options: object) -> DataFrame:
    """What the source reads at once; `subscribe` and the like are options."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(**{key: str(value) for key, value in options.items()}).load()


def places_read(seen: DataFrame) -> list[Place]:
    return sorted(place_of(row) for row in seen.select("topic", "partition", "offset").collect())


def place_of(row: Row) -> Place:
    return row["topic"], row["partition"], row["offset"]


def stream(spark: SparkSession, broker: Broker, **options: object) -> DataFrame:
    """What the source reads for ever."""
    reader: DataStreamReader = spark.readStream.format("kafka")
    reader = reader.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(**{key: str(value) for key, value in options.items()}).load()


class Running:
    """A streaming query whose batches come into a list: `batches[n]` are the places that batch n read.

    A batch is ended, and the next one planned, once it may `pass_on`; that is at once unless it is held back.
    """

    def __init__(self, seen: DataFrame, checkpoint: object, *, held: bool = False, **trigger: Any) -> None:
        self.batches: dict[int, list[Place]] = {}
        self._may_pass = threading.Event()
        if not held:
            self.pass_on()

        def take(rows: DataFrame, number: int) -> None:
            self.batches[number] = places_read(rows)
            self._may_pass.wait()

        writer = seen.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
        self.query: StreamingQuery = (writer.trigger(**trigger) if trigger else writer).start()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.pass_on()
        self.query.stop()

    def pass_on(self) -> None:
        """Let the batch that is held back end; no later one is."""
        self._may_pass.set()

    @property
    def seen(self) -> list[Place]:
        """All places that were read, each as often as it was read."""
        return sorted(place for batch in list(self.batches.values()) for place in batch)

    def sizes(self) -> list[int]:
        return [len(places) for _, places in sorted(self.batches.items()) if places]

    def wait_for(self, expected: Sequence[Place], timeout_s: float = TIMEOUT_S) -> None:
        """Until the query has read so many records; what it has read must be what was expected."""

        def enough() -> bool:
            error = self.query.exception()
            assert error is None, str(error)
            return len(self.seen) >= len(expected)

        try:
            wait_until(enough, f"{len(expected)} records", timeout_s)
        except TimeoutError:
            assert self.seen == sorted(expected)
            raise
        assert self.seen == sorted(expected)

    def finish(self) -> None:
        """Until a query ends that ends by itself."""
        assert self.query.awaitTermination(TIMEOUT_S), "the query did not end"

    def failure(self) -> str:
        """Until the query fails: what it says."""
        from pyspark.errors import StreamingQueryException

        try:
            ended = self.query.awaitTermination(TIMEOUT_S)
        except StreamingQueryException as error:
            return str(error)
        raise AssertionError(f"the query did not fail, it {'ended' if ended else 'still runs'}")

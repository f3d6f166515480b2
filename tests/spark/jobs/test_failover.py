"""Jobs on a cluster go on while brokers are killed: the same queries, not ones that are started anew.

One job copies a topic to another through idempotent producers, one keeps the source in Parquet, each record
once, and a group reads the copy. Killed are the leader that all of them use, and the group's coordinator.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from spark_jobs.jobs import archive, drain
from spark_jobs.kafka import Kafka, Source
from spark_jobs.options import Stream
from spark_jobs.running import Stopping, end_after_batch
from tests.spark.jobs.groups import CHANGES
from tests.support.cluster_process import ClusterProcess
from tests.support.waiting import wait_until
from tests.support.zookeeper_process import ZookeeperProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group(CHANGES)]

SOURCE, TARGET, GROUP = "orders", "orders-wide", "readers"
PARTITIONS, WIDTH = 3, 6
PART = 600  # records of each part of the story
TIMEOUT_S = 240


class Story:
    """What happens meanwhile, in a thread of its own; the jobs run in others."""

    def __init__(self, cluster: ClusterProcess, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.written = 0
        self.read: dict[tuple[int, int], bytes] = {}
        config = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        patient = {**config, "enable.idempotence": True, "message.timeout.ms": TIMEOUT_S * 1000}
        self.producer = Producer(patient)
        self.reader = Consumer({**config, "group.id": GROUP, "auto.offset.reset": "earliest"})
        self.admin = AdminClient(config)

    def stream(self, name: str) -> Stream:
        return Stream(
            str(self.folder / f"{name}-checkpoint"), "200 milliseconds", self.folder / f"{name}.jsonl"
        )

    def write(self) -> None:
        """One part more; returns when all of it is acknowledged."""
        problems: list[object] = []
        for number in range(self.written, self.written + PART):
            self.producer.produce(
                SOURCE,
                b"%d" % number,
                b"%d" % (number % 40),
                number % 40 % PARTITIONS,
                on_delivery=lambda error, _: problems.append(error) if error is not None else None,
            )
        assert self.producer.flush(TIMEOUT_S) == 0
        assert problems == []
        self.written += PART

    def done(self, name: str) -> int:
        """How many records a job has behind it."""
        file = self.folder / f"{name}.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return sum(json.loads(line)["records"] for line in lines)

    def await_jobs(self) -> None:
        """Until both jobs and the group have everything so far."""

        def all_there() -> bool:
            for message in self.reader.consume(1000, 0.1):
                if message.error() is None:
                    self.read[message.partition(), message.offset()] = message.value()
            return min(len(self.read), self.done("drain"), self.done("archive")) >= self.written

        wait_until(all_there, f"{self.written} records to be copied, archived and read", TIMEOUT_S)

    def await_replicas(self) -> None:
        """Until anyone may be killed: a partition with one replica in sync has no leader without that one."""
        for topic in (SOURCE, TARGET, "__consumer_offsets"):
            self.cluster.await_full_isr(topic, TIMEOUT_S)

    def coordinator(self) -> int:
        """The group's; asked again while the office changes hands."""
        found: list[int] = []

        def told() -> bool:
            try:
                described = self.admin.describe_consumer_groups([GROUP])[GROUP].result(TIMEOUT_S)
            except KafkaException:
                return False
            found.append(described.coordinator.id)
            return found[-1] in self.cluster.brokers

        wait_until(told, "the group's coordinator", TIMEOUT_S)
        return found[-1]

    def tell(self) -> None:
        self.write()
        self.reader.subscribe([TARGET])
        self.await_jobs()
        self.await_replicas()
        leader = self.cluster.leader(SOURCE)
        leader.kill()
        self.write()
        self.await_jobs()
        leader.start()
        self.await_replicas()
        self.cluster.brokers[self.coordinator()].kill()
        self.write()
        self.await_jobs()


@pytest.fixture
def story(zookeeper: ZookeeperProcess, tmp_path: Path) -> Iterator[Story]:
    with ClusterProcess(zookeeper.address) as cluster:
        found = Story(cluster, tmp_path)
        cluster.create_topic(SOURCE, PARTITIONS)
        cluster.create_topic(TARGET, WIDTH)
        yield found
        found.reader.close()


@pytest.mark.usefixtures("own_signals")
def test_jobs_and_groups_go_on_when_leader_and_coordinator_are_killed(
    spark: SparkSession, story: Story, tmp_path: Path
) -> None:
    kafka = Kafka(story.cluster.bootstrap_servers)
    copy = drain.Drain(kafka, SOURCE, TARGET, story.stream("drain"), partitions=WIDTH)
    stopping = Stopping()
    kept = str(tmp_path / "archive")

    def keep() -> None:
        archive.run(spark, kafka, Source((SOURCE,), starting="earliest"), kept, story.stream("archive"))

    def ask_when_told(told: Future[None]) -> None:
        stopping.ask()
        for query in spark.streams.active:
            if query.name == "archive":
                end_after_batch(query)

    with ThreadPoolExecutor(2) as pool:
        keeping = pool.submit(keep)
        telling = pool.submit(story.tell)
        telling.add_done_callback(ask_when_told)
        drain.run(spark, copy, stopping)
        telling.result(TIMEOUT_S)
        keeping.result(TIMEOUT_S)
    numbers = {b"%d" % number for number in range(story.written)}
    assert Counter(story.read.values()) == Counter(numbers)  # an idempotent producer's retries are not seen
    by_partition: dict[int, list[int]] = {}
    for (partition, _), value in sorted(story.read.items()):
        by_partition.setdefault(partition, []).append(int(value))
    for values in by_partition.values():
        for key in {value % 40 for value in values}:
            of_key = [value for value in values if value % 40 == key]
            assert of_key == sorted(of_key)
    rows = spark.read.parquet(kept).select("partition", "offset", "value").collect()
    assert Counter(bytes(row["value"]) for row in rows) == Counter(numbers)
    assert len({(row["partition"], row["offset"]) for row in rows}) == story.written

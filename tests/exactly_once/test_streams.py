"""A word count of Kafka Streams with exactly_once_v2: exact over kills of broker and application.

The application forwards each new count, so what it writes is not only right at the end: the counts of a word
are one, two, three and so on, none twice and none left out.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.jars import kafka_streams_jars, pyspark_jar
from tests.support.java import java
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

SOURCE = Path(__file__).parents[1] / "support" / "java_sources" / "WordCount.java"
WORDS = ("to", "be", "or", "not", "that", "is", "the", "question")
COUNT = 6_000
PARTITIONS = 2
LIMIT_S = 180.0

pytestmark = pytest.mark.kafka


@contextmanager
def word_count(servers: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The application, killed at the end."""
    jars = [*kafka_streams_jars().glob("*.jar"), pyspark_jar("janino"), pyspark_jar("commons-compiler")]
    command = [str(java()), "-Xmx256m", "-XX:+UseSerialGC", "-cp", os.pathsep.join(map(str, jars))]
    command += ["org.codehaus.janino.SimpleCompiler", str(SOURCE), "WordCount", servers, str(directory)]
    with (directory / "streams.log").open("ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def counted(servers: str) -> list[tuple[str, int]]:
    """(word, count) as a reader of committed records sees them now, in the order of each partition."""
    reader = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    reader.assign([TopicPartition("counts", index, 0) for index in range(PARTITIONS)])
    found: list[tuple[str, int]] = []
    ended: set[int] = set()  # the end of a partition is told again when more has come
    while len(ended) < PARTITIONS:
        for message in reader.consume(1000, 1.0):
            if message.error() is None:
                key, value = message.key(), message.value()
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                found.append((key.decode(), int(value)))
            elif message.error().name() == "_PARTITION_EOF":
                ended.add(message.partition())
    reader.close()
    return found


def test_every_word_is_counted_once(tmp_path: Path) -> None:
    settings = {"transaction.state.log.num.partitions": "4", "offsets.topic.num.partitions": "4"}
    chance = random.Random(1)
    words = [chance.choice(WORDS) for _ in range(COUNT)]
    with OttlaProcess(settings) as broker:
        servers = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        topics = [NewTopic(name, PARTITIONS, 1) for name in ("words", "counts")]
        for made in admin.create_topics(topics).values():
            made.result()
        producer = Producer({"bootstrap.servers": servers, "log_level": 0})

        def say(some: list[str]) -> None:
            for word in some:  # each word has its partition, as the application does not repartition
                producer.produce("words", word.encode(), word.encode(), WORDS.index(word) % PARTITIONS)
            assert producer.flush(60) == 0

        def await_counts(count: int) -> None:
            try:
                wait_until(lambda: len(counted(servers)) >= count, f"{count} counts", LIMIT_S)
            except BaseException:
                print((tmp_path / "streams.log").read_text(errors="replace")[-5000:])
                raise

        third = COUNT // 3
        say(words[:third])
        with word_count(servers, tmp_path):
            await_counts(third)
            say(words[third : 2 * third])
            broker.kill()
            broker.start()
            await_counts(third + third // 2)
        say(words[2 * third :])
        with word_count(servers, tmp_path):  # another life, over what was left open by the one before
            await_counts(COUNT)
        found = counted(servers)
    expected = Counter(words)
    for word in WORDS:
        assert [count for name, count in found if name == word] == list(range(1, expected[word] + 1)), word

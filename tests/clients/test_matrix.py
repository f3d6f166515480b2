"""Each client writes real data with each codec; each other client reads it back, byte for byte, twice.

The second reading comes after a kill -9 and a restart on the same directory: all bytes are as they were, and
each client reads a topic of each codec again. The tests of this file share one broker and run in the order in
which they stand.
"""

from __future__ import annotations

import itertools
import re

import pytest

from protocol.records.batch import read_header
from tests.clients.conftest import PARTITIONS, Matrix, uncollected
from tests.clients.datasets import FLIGHTS, Row
from tests.clients.readers import READERS, Seen
from tests.clients.writers import CODECS, WRITERS
from tests.support.kafka_process import run_tool
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.xdist_group("client-matrix")

STORED_CODEC = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def check(matrix: Matrix, topics: list[str], seen: Seen) -> None:
    """Every record once, in order, at consecutive offsets, with the bytes that were sent."""
    assert list(seen) == topics
    for topic in topics:
        for partition, expected in enumerate(matrix.topics[topic]):
            assert [offset for offset, _ in seen[topic][partition]] == list(range(len(expected)))
            assert [row for _, row in seen[topic][partition]] == expected


def read_all(matrix: Matrix, reader: str, topics: list[str]) -> None:
    with uncollected():
        check(matrix, topics, READERS[reader](matrix.broker.bootstrap_servers, topics, PARTITIONS))


def one_of_each_codec(matrix: Matrix) -> list[str]:
    """Topics, written by the libraries in turn."""
    return [
        matrix.topic(library, codec) for library, codec in zip(itertools.cycle(WRITERS), CODECS, strict=False)
    ]


def stored(matrix: Matrix) -> dict[tuple[str, int], list[bytes]]:
    """All batches as they are stored, by partition."""
    with WireClient(matrix.broker.bootstrap_servers) as client:
        return {
            (topic, partition): client.stored_batches(topic, partition)
            for topic in matrix.topics
            for partition in range(PARTITIONS)
        }


def test_the_cells_hold_every_flight_once(matrix: Matrix) -> None:
    values = [row.value for topic in matrix.topics.values() for rows in topic for row in rows]
    flights = [value for value in values if value is not None and value.startswith(b"2013,")]
    assert len(flights) == FLIGHTS


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("library", WRITERS)
def test_batches_are_stored_in_the_codec_of_the_producer(matrix: Matrix, library: str, codec: str) -> None:
    with WireClient(matrix.broker.bootstrap_servers) as client:
        headers = [read_header(batch) for batch in client.stored_batches(matrix.topic(library, codec))]
    # librdkafka sends a batch of few records plain where compression would make it larger.
    assert {header.codec for header in headers if header.record_count > 10} == {STORED_CODEC[codec]}


@pytest.mark.parametrize(
    "reader", [r if r != "kcat" else pytest.param(r, marks=pytest.mark.kcat) for r in READERS]
)
def test_every_client_reads_what_every_client_wrote(matrix: Matrix, reader: str) -> None:
    read_all(matrix, reader, list(matrix.topics))


def java_rows(matrix: Matrix, topic: str, partition: int) -> list[tuple[int, Row]]:
    done = run_tool(
        "consumer.ConsoleConsumer",
        *("--bootstrap-server", matrix.broker.bootstrap_servers, "--topic", topic),
        *("--partition", str(partition), "--offset", "earliest"),
        *("--max-messages", str(len(matrix.topics[topic][partition]))),
        *("--formatter-property", "print.timestamp=true", "--formatter-property", "print.offset=true"),
        *("--formatter-property", "print.headers=true", "--formatter-property", "print.key=true"),
        *("--formatter-property", "key.separator=|", "--formatter-property", "headers.separator=;"),
    )
    assert done.returncode == 0, done.stderr
    line = re.compile(r"CreateTime:(\d+)\|Offset:(\d+)\|([^|]*)\|([^|]*)\|(.*)")
    rows = []
    for text in done.stdout.splitlines():
        found = line.fullmatch(text)
        assert found, text
        timestamp, offset, headers, key, value = found.groups()
        pairs = tuple(
            (name, content.encode()) for name, _, content in (h.partition(":") for h in headers.split(";"))
        )
        rows.append(
            (int(offset), Row(None if key == "null" else key.encode(), value.encode(), pairs, int(timestamp)))
        )
    return rows


@pytest.mark.kafka
@pytest.mark.parametrize("codec", CODECS)
def test_the_java_console_consumer_reads_each_codec(matrix: Matrix, codec: str) -> None:
    topic = matrix.topic(list(WRITERS)[CODECS.index(codec) % len(WRITERS)], codec)
    rows = java_rows(matrix, topic, 0)
    assert [offset for offset, _ in rows] == list(range(len(rows)))
    assert [row for _, row in rows] == matrix.topics[topic][0]


def test_after_a_kill_all_is_stored_as_it_was_and_every_client_reads_it(matrix: Matrix) -> None:
    before = stored(matrix)
    matrix.broker.kill()
    matrix.broker.start()
    assert stored(matrix) == before
    for reader in READERS:
        if reader != "kcat":
            read_all(matrix, reader, one_of_each_codec(matrix))


@pytest.mark.kcat
def test_after_a_kill_kcat_reads_the_same_again(matrix: Matrix) -> None:
    read_all(matrix, "kcat", one_of_each_codec(matrix))


@pytest.mark.kafka
def test_after_a_kill_the_java_console_consumer_reads_the_same_again(matrix: Matrix) -> None:
    topic = matrix.topic("confluent", "zstd")
    assert [row for _, row in java_rows(matrix, topic, 1)] == matrix.topics[topic][1]

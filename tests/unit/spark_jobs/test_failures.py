"""Spark's words become one line that names topic, partition and offset."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_jobs.failures import ABOUT, JobFailed, explain


@pytest.fixture(autouse=True)
def _about() -> Iterator[None]:
    before = ABOUT.what, ABOUT.bootstrap
    ABOUT.what, ABOUT.bootstrap = "topic orders", "host:9092"
    yield
    ABOUT.what, ABOUT.bootstrap = before


class JavaError:
    """A Java exception as py4j shows it."""

    def __init__(self, kind: str, text: str, cause: JavaError | None = None) -> None:
        self.kind, self.text, self.cause = kind, text, cause

    def getClass(self) -> JavaError:
        return self

    def getName(self) -> str:
        return self.kind

    def getMessage(self) -> str:
        return self.text

    def getCause(self) -> JavaError | None:
        return self.cause


class StreamingQueryException(Exception):
    """Pyspark's, with the Java exception that it stands for."""

    def __init__(self, text: str, origin: JavaError | None = None) -> None:
        super().__init__(text)
        self._origin = origin


def failed(kind: str, text: str) -> StreamingQueryException:
    inner = JavaError("SparkException", "Job aborted.\nDriver stacktrace:", JavaError(kind, text))
    return StreamingQueryException("[STREAM_FAILED] Query terminated\n=== Streaming Query ===", inner)


LOST = "Some data may have been lost because they are not available in Kafka any more; Reason: "


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        (
            "KafkaIllegalStateException",
            LOST + "Could not read records in offset [10, 20) for topic partition my-orders-0\nwith consumer",
            "topic my-orders, partition 0: offsets 10 to 20 (exclusive) can't be read",
        ),
        (
            "KafkaIllegalStateException",
            LOST + "Partition my-orders-3 offset was changed from 10 to 4.\nThis could be either 1) ...",
            "topic my-orders, partition 3: it was read up to offset 10, but ends at 4 now",
        ),
        (
            "KafkaIllegalStateException",
            LOST + "Partitions Set(a-0, a-1) have been deleted.",
            "partitions a-0, a-1 are gone",
        ),
        (
            "KafkaIllegalStateException",
            LOST + "Cannot find initial offsets for partitions Set(a-0). They may have been deleted.",
            "partitions a-0 are gone",
        ),
        (
            "KafkaIllegalStateException",
            LOST + "Added partition a-7 starts from 5 instead of 0.",
            "topic a, partition 7: new, and its first records are gone: it starts at offset 5",
        ),
        (
            "UnknownTopicOrPartitionException",
            "This server does not host",
            "topic orders: does not exist on host",
        ),
        (
            "java.util.concurrent.TimeoutException",
            "Timed out waiting for a node assignment. Call: describeTopics",
            "the broker at host:9092 does not answer",
        ),
        (
            "org.apache.kafka.common.errors.TimeoutException",
            "Topic sink-topic not present in metadata after 60000 ms.",
            "topic sink-topic: the broker at host:9092 took no records",
        ),
        (
            "RecordTooLargeException",
            "The request included a message larger than the max message size the server will accept.",
            "the broker takes no record of this size: The request included",
        ),
        ("TopicAuthorizationException", "Not authorized to access topics: [a]", "topic a: not authorized."),
        (
            "SaslAuthenticationException",
            "Authentication failed",
            "the broker refused who we are: Authentication",
        ),
        (
            "ConfigException",
            "No resolvable bootstrap urls given in bootstrap.servers",
            "host:9092: no such host (--bootstrap)",
        ),
        (
            "AssertionError",
            "No offset matched from request of topic-partition a-b-2 and timestamp 1356.",
            "topic a-b, partition 2: no record at or after the time 1356",
        ),
        (
            "AnalysisException",
            "[PATH_NOT_FOUND] Path does not exist: file:/tmp/nothing. SQLSTATE: 42K03",
            "file:/tmp/nothing: no such file.",
        ),
        (
            "RuntimeException",
            "file:/tmp/x.parquet is not a Parquet file. Expected magic number at tail",
            "file:/tmp/x.parquet: the file can't be read: file:/tmp/x.parquet is not a Parquet file.",
        ),
        (
            "PythonException",
            "Traceback ...\nspark_jobs.files.lines.LinesGone: file /a.log: bytes 0 to 9 are gone (deleted)\n",
            "file /a.log: bytes 0 to 9 are gone (deleted). To go on without them",
        ),
        ("IOException", "No space left on device", "the disk is full"),
        (
            "org.apache.kafka.common.errors.TimeoutException",
            "Timeout of 60000ms expired before the position for partition a-0 could be determined",
            "the broker at host:9092 does not answer",
        ),
        ("java.net.SocketTimeoutException", "Read timed out", "SocketTimeoutException: Read timed out"),
        ("x.WeirdException", "\nfirst\nsecond", "WeirdException: first"),
    ],
)
def test_one_line_says_what_is_wrong(kind: str, text: str, told: str) -> None:
    line = explain(failed(kind, text))
    assert line.startswith(told)
    assert "\n" not in line


@pytest.mark.parametrize("lost", ["[1, 2) for topic partition a-0", "[1, 2) for topic partition a.b_c-0"])
def test_lost_records_are_explained(lost: str) -> None:
    line = explain(failed("KafkaIllegalStateException", f"{LOST}Could not read records in offset {lost}"))
    assert "failOnDataLoss=true" in line
    assert "--no-fail-on-data-loss" in line


def test_a_jobs_own_line_stays_as_it_is() -> None:
    outer = RuntimeError("in a batch")
    outer.__cause__ = JobFailed("row 5 is bad")
    assert explain(outer) == "row 5 is bad"


def test_an_error_of_pythons() -> None:
    assert explain(ValueError("no number")) == "ValueError: no number"

"""What a job asks a cluster beside reading and writing: partitions, offsets, settings, a new topic.

Goes through the AdminClient of the Kafka client that the connector brings, in the driver's JVM: the
`kafka.` options of the job, security among them, are its settings as they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from spark_jobs.failures import JobFailed

TIMEOUT_MS = 30_000
_ADMIN = "org.apache.kafka.clients.admin"


class TopicError(JobFailed):
    """A question about a topic that the cluster would not answer; the text names topic and reason."""


class Topics:
    """One admin client; close it (or use `with`)."""

    def __init__(self, spark: SparkSession, bootstrap: str, options: Mapping[str, str]) -> None:
        context: Any = spark.sparkContext
        self.bootstrap = bootstrap
        self.jvm = context._jvm
        settings = self.jvm.java.util.Properties()
        told = {"default.api.timeout.ms": str(TIMEOUT_MS), "request.timeout.ms": "15000", **options}
        for key, value in {**told, "bootstrap.servers": bootstrap}.items():
            settings.setProperty(key.removeprefix("kafka."), str(value))
        try:
            self.admin = self.jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        except Py4JJavaError as error:
            raise TopicError(f"{bootstrap}: {reason(error)}") from error

    def __enter__(self) -> Topics:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.admin.close()

    def partitions(self, topic: str) -> int | None:
        """How many partitions a topic has; None where there is no such topic."""
        try:
            found = self.admin.describeTopics(self._list([topic])).allTopicNames().get()
        except Py4JJavaError as error:
            if class_name(cause(error)) == "UnknownTopicOrPartitionException":
                return None
            raise self._failed(f"topic {topic}", error) from error
        return int(found.get(topic).partitions().size())

    def create(
        self, topic: str, partitions: int, replication: int = -1, config: Mapping[str, str] | None = None
    ) -> None:
        """A new topic; replication -1 is the cluster's default. Returns when the cluster knows it."""
        optional = self.jvm.java.util.Optional
        factor = (
            optional.of(self.jvm.java.lang.Short(str(replication))) if replication > 0 else optional.empty()
        )
        new = self.jvm.org.apache.kafka.clients.admin.NewTopic(
            topic, optional.of(self.jvm.java.lang.Integer(str(partitions))), factor
        )
        if config:
            new = new.configs(self._map(config))
        try:
            self.admin.createTopics(self._list([new])).all().get()
        except Py4JJavaError as error:
            raise self._failed(f"topic {topic} can't be created", error) from error

    def settings(self, topic: str) -> dict[str, str]:
        """The topic's settings with their values in force."""
        resource = self.jvm.org.apache.kafka.common.config.ConfigResource
        asked = resource(getattr(resource, "Type").TOPIC, topic)  # noqa: B009
        try:
            found = self.admin.describeConfigs(self._list([asked])).all().get().get(asked)
        except Py4JJavaError as error:
            raise self._failed(f"topic {topic}", error) from error
        return {str(entry.name()): str(entry.value()) for entry in found.entries().toArray()}

    def starts(self, topic: str) -> dict[int, int]:
        """First offset of each partition that is still there."""
        return self._offsets(topic, "earliest", committed=False)

    def ends(self, topic: str, committed: bool = False) -> dict[int, int]:
        """End offset (exclusive) of each partition; with `committed` the last stable offset."""
        return self._offsets(topic, "latest", committed)

    def _offsets(self, topic: str, which: str, committed: bool) -> dict[int, int]:
        count = self.partitions(topic)
        if count is None:
            raise TopicError(f"topic {topic} does not exist on {self.bootstrap}")
        place = self.jvm.org.apache.kafka.common.TopicPartition
        kind = self.jvm.org.apache.kafka.clients.admin.OffsetSpec
        asked = self.jvm.java.util.HashMap()
        for number in range(count):
            asked.put(place(topic, number), getattr(kind, which)())
        level = self.jvm.org.apache.kafka.common.IsolationLevel
        level = level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
        options = self.jvm.org.apache.kafka.clients.admin.ListOffsetsOptions(level)
        try:
            found = self.admin.listOffsets(asked, options).all().get()
        except Py4JJavaError as error:
            raise self._failed(f"topic {topic}", error) from error
        return {number: int(found.get(place(topic, number)).offset()) for number in range(count)}

    def _failed(self, what: str, error: Py4JJavaError) -> TopicError:
        return TopicError(f"{what}: {reason(error)} ({self.bootstrap})")

    def _list(self, items: Iterable[Any]) -> Any:
        made = self.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def _map(self, items: Mapping[str, str]) -> Any:
        made = self.jvm.java.util.HashMap()
        for key, value in items.items():
            made.put(key, value)
        return made


def cause(error: Py4JJavaError) -> Any:
    """The innermost Java exception."""
    found = error.java_exception
    while found.getCause() is not None:
        found = found.getCause()
    return found


def class_name(java_exception: Any) -> str:
    return str(java_exception.getClass().getSimpleName())


def reason(error: Py4JJavaError) -> str:
    inner = cause(error)
    return f"{class_name(inner)}: {inner.getMessage()}"

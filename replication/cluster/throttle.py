"""Replication quotas: how fast partitions that are being moved may be copied.

Per topic leader.replication.throttled.replicas and follower.replication.throttled.replicas name replicas as
`partition:broker`, or all with `*`; per broker ...throttled.rate says bytes a second. Only replicas that are
not in sync are held back: a throttle must never push one out of the ISR. What in-sync ones copy counts all
the same, since the rate is for the sum.

The rate is measured over eleven samples of a second.
"""

from __future__ import annotations

from collections.abc import Mapping

from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage
from replication.partition import Partition

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"

NO_LIMIT = (1 << 63) - 1
SAMPLES, SAMPLE_MS = 11, 1000
EVERY = None


class Rate:
    """Bytes a second over the last samples. Times are monotonic ms."""

    def __init__(self) -> None:
        self._samples: list[tuple[int, int]] = []  # begin, bytes

    def record(self, size_bytes: int, now_ms: int) -> None:
        """So many bytes now."""
        samples = self._samples
        if samples and now_ms - samples[-1][0] < SAMPLE_MS:
            samples[-1] = (samples[-1][0], samples[-1][1] + size_bytes)
        else:
            samples.append((now_ms, size_bytes))
            del samples[:-SAMPLES]

    def bytes_per_second(self, now_ms: int) -> float:
        """What is older than all samples together counts no more; the first seconds count as ten."""
        self._samples = [each for each in self._samples if now_ms - each[0] < SAMPLES * SAMPLE_MS]
        if not self._samples:
            return 0.0
        span_ms = max(now_ms - self._samples[0][0], (SAMPLES - 1) * SAMPLE_MS)
        return sum(size for _, size in self._samples) * 1000 / span_ms


def throttled_partitions(text: str, broker_id: int) -> frozenset[int] | None:
    """The partitions of a topic that are throttled on this broker; EVERY for all."""
    if text.strip() == "*":
        return EVERY
    pairs = [pair.strip().split(":") for pair in text.split(",") if pair.strip()]
    return frozenset(int(index) for index, broker in pairs if int(broker) == broker_id)


class ReplicationQuota:
    """One side, leader's or follower's, of one broker. `limit` is in bytes a second."""

    def __init__(self, key: str, broker_id: int) -> None:
        self._key = key
        self._broker_id = broker_id
        self._rate = Rate()
        self._topics: dict[str, frozenset[int] | None] = {}
        self.limit = NO_LIMIT

    @property
    def active(self) -> bool:
        """Whether any partition is throttled at all."""
        return bool(self._topics)

    def follow(self, old: ClusterImage, new: ClusterImage) -> None:
        """Subscriber of images: topics' lists of throttled replicas."""
        if old.configs is new.configs:
            return
        self._topics = {}
        for resource, values in new.configs.items():
            if resource.type == ConfigType.TOPIC:
                self._follow_topic(resource, values)

    def _follow_topic(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        partitions = throttled_partitions(values.get(self._key, ""), self._broker_id)
        if partitions is EVERY or partitions:
            self._topics[resource.name] = partitions

    def is_throttled(self, partition: Partition) -> bool:
        """Whether the partition is in its topic's list."""
        if partition.topic not in self._topics:
            return False
        partitions = self._topics[partition.topic]
        return partitions is EVERY or partition.index in partitions

    def record(self, partition: Partition, size_bytes: int, now_ms: int) -> None:
        """So much of the partition was copied; counts if it is throttled, in sync or not."""
        if self.is_throttled(partition):
            self._rate.record(size_bytes, now_ms)

    def exceeded(self, now_ms: int) -> bool:
        """Whether the rate is above the limit."""
        return self.limit < NO_LIMIT and self._rate.bytes_per_second(now_ms) > self.limit

    def holds(self, partition: Partition, in_sync: bool, now_ms: int) -> bool:
        """Whether a replica of the partition has to wait."""
        return not in_sync and self.is_throttled(partition) and self.exceeded(now_ms)

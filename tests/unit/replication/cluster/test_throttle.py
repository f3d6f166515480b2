"""Replication quotas."""

from __future__ import annotations

import pytest

from replication.cluster.throttle import (
    EVERY,
    LEADER_REPLICAS,
    NO_LIMIT,
    Rate,
    ReplicationQuota,
    throttled_partitions,
)
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage
from tests.unit.replication.leading import Led


@pytest.mark.parametrize(
    ("text", "partitions"),
    [
        ("*", EVERY),
        ("", frozenset()),
        ("0:1,1:2,2:1", frozenset({0, 2})),
        (" 5:1 , 6:3", frozenset({5})),
        ("0:9", frozenset()),
    ],
)
def test_the_list_names_partitions_of_brokers(text, partitions):
    assert throttled_partitions(text, 1) == partitions


def test_the_rate_is_over_ten_seconds_at_least():
    rate = Rate()
    rate.record(10_000, 0)
    assert rate.bytes_per_second(0) == 1000
    rate.record(10_000, 500)
    rate.record(10_000, 1000)
    assert rate.bytes_per_second(1000) == 3000
    assert rate.bytes_per_second(10_500) == pytest.approx(30_000 / 10.5)
    assert rate.bytes_per_second(11_000) == 1000  # the first sample is too old
    assert rate.bytes_per_second(12_000) == 0


def test_no_more_samples_are_kept_than_count():
    rate = Rate()
    for second in range(100):
        rate.record(1000, second * 1000)
    assert len(rate._samples) == 11
    assert rate.bytes_per_second(99_000) == pytest.approx(1100)


def quota(text, limit=NO_LIMIT):
    made = ReplicationQuota(LEADER_REPLICAS, 1)
    made.limit = limit
    topic = ConfigResource(ConfigType.TOPIC, "t")
    image = ClusterImage().with_configs({topic: {LEADER_REPLICAS: text}})
    made.follow(ClusterImage(), image)
    return made


def test_only_what_is_named_counts_and_waits():
    partition = Led().partition
    other = quota("1:1", limit=10)
    other.record(partition, 10_000, 0)
    assert not other.is_throttled(partition)
    assert not other.exceeded(0)
    named = quota("0:1", limit=10)
    named.record(partition, 10_000, 0)
    assert named.holds(partition, in_sync=False, now_ms=0)
    assert not named.holds(partition, in_sync=True, now_ms=0)
    assert not named.holds(partition, in_sync=False, now_ms=20_000)


def test_without_a_limit_nothing_waits():
    partition = Led().partition
    every = quota("*")
    every.record(partition, 1 << 40, 0)
    assert every.active
    assert not every.holds(partition, in_sync=False, now_ms=0)


def test_a_list_that_is_gone_throttles_no_more():
    made = quota("*", limit=1)
    assert made.active
    topic = ConfigResource(ConfigType.TOPIC, "t")
    before = ClusterImage().with_configs({topic: {LEADER_REPLICAS: "*"}})
    made.follow(before, before.with_configs({topic: {}}))
    assert not made.active

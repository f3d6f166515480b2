"""Where replicas are: consumers read from the nearest one, and a disk that fails takes its own ones only.

Two brokers in two racks, with three log directories each.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from protocol.errors import ErrorCode
from replication.cluster.preferred_replica import RACK_AWARE
from tests.cluster.load import Load, check
from tests.support.cluster_process import PATIENT, ClusterProcess
from tests.support.log_dirs import NAMES, alter, break_dir, described, places, settings
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.xdist_group("cluster")

LEADER, FOLLOWER = 1, 2


@pytest.fixture(scope="module")
def cluster(zookeeper: ZookeeperProcess) -> Iterator[ClusterProcess]:
    more = {"min.insync.replicas": "1", "replica.selector.class": RACK_AWARE, **PATIENT}
    cluster = ClusterProcess(zookeeper.address, more, count=2)
    for number, broker in cluster.brokers.items():
        broker.overrides.update(settings(broker.directory), **{"broker.rack": f"rack-{number}"})
    with cluster:
        yield cluster


def create(cluster: ClusterProcess, name: str, partitions: int = 1) -> None:
    """All partitions are led by LEADER."""
    cluster.create_topic(name, [[LEADER, FOLLOWER]] * partitions)


def fetch(cluster: ClusterProcess, broker: int, name: str, offset: int, rack: str):
    """The answer of one broker for the only partition of a topic."""
    with WireClient(cluster.brokers[broker].bootstrap_servers) as wire:
        return wire.fetch(name, offset, rack_id=rack)


def test_a_consumer_is_sent_to_the_replica_in_its_rack_and_no_further_than_that_one_has(
    cluster: ClusterProcess,
) -> None:
    create(cluster, "read")
    with WireClient(cluster.brokers[LEADER].bootstrap_servers) as wire:
        wire.produce_values("read", b"a", b"b", partition=0)
    wait_until(
        lambda: fetch(cluster, LEADER, "read", 0, "rack-2").preferred_read_replica == FOLLOWER,
        "the follower to be known to have the records",
    )
    sent_on = fetch(cluster, LEADER, "read", 0, "rack-2")
    assert (sent_on.error_code, sent_on.records or b"") == (ErrorCode.NONE, b"")
    for rack in ("rack-1", "elsewhere", ""):
        stays = fetch(cluster, LEADER, "read", 0, rack)
        assert (stays.error_code, stays.preferred_read_replica) == (ErrorCode.NONE, -1)
        assert stays.records
    wait_until(lambda: fetch(cluster, FOLLOWER, "read", 0, "rack-2").records, "the follower's mark")
    served = fetch(cluster, FOLLOWER, "read", 0, "rack-2")
    assert (served.high_watermark, served.preferred_read_replica) == (2, -1)
    beyond = fetch(cluster, FOLLOWER, "read", 3, "rack-2")
    assert (beyond.error_code, beyond.preferred_read_replica) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_a_real_consumer_reads_from_its_rack_and_from_the_leader_when_that_replica_is_gone(
    cluster: ClusterProcess,
) -> None:
    create(cluster, "racked")
    read_from: list[int] = []

    def look(statistics: str) -> None:
        topics = json.loads(statistics)["topics"]
        if "racked" in topics:
            read_from.append(topics["racked"]["partitions"]["0"]["broker"])

    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "racked",
            "client.rack": f"rack-{FOLLOWER}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "statistics.interval.ms": 100,
            "reconnect.backoff.max.ms": 500,
            "stats_cb": look,
            "log_level": 0,
        }
    )
    values: list[bytes] = []

    def consume_one(value: bytes) -> None:
        with WireClient(cluster.brokers[LEADER].bootstrap_servers) as wire:
            wire.produce_values("racked", value, partition=0)
        deadline = time.monotonic() + 60
        while value not in values:
            assert time.monotonic() < deadline, f"{value!r} was not read; {values}"
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                values.append(message.value())

    def await_source(number: int) -> None:
        def there() -> bool:
            consumer.poll(0.1)
            return read_from[-1:] == [number]

        wait_until(there, f"it to read from broker {number}")

    try:
        consumer.assign([TopicPartition("racked", 0, 0)])
        consume_one(b"first")
        await_source(FOLLOWER)
        consume_one(b"second")
        assert cluster.brokers[FOLLOWER].stop() == 0
        consume_one(b"third")
        await_source(LEADER)
        cluster.brokers[FOLLOWER].start()
        cluster.await_full_isr("racked")
        consume_one(b"fourth")
        await_source(FOLLOWER)
        assert values == [b"first", b"second", b"third", b"fourth"]
    finally:
        consumer.close()


def test_a_failed_directory_moves_its_leaders_and_the_broker_serves_the_others(
    cluster: ClusterProcess,
) -> None:
    broker = cluster.brokers[LEADER]
    with WireClient(broker.bootstrap_servers) as wire:
        for index, name in enumerate(NAMES):
            alter(wire, broker.directory / name, "spread", index)
        create(cluster, "spread", len(NAMES))
        assert places(wire, "spread") == dict(enumerate(NAMES))
        with Load(cluster.bootstrap_servers, "spread", len(NAMES)) as load:
            wait_until(lambda: load.acks() > 100, "acknowledged records")
            break_dir(broker.directory / NAMES[2])
            wait_until(lambda: cluster.leader_id("spread", 2) == FOLLOWER, "another leader")
            wanted = load.acks() + 300
            wait_until(lambda: load.acks() > wanted, "more acknowledged records")
        assert not load.failed
        check(load, cluster.bootstrap_servers)
        assert described(wire)[NAMES[2]].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        *others, failed = cluster.partitions("spread")
        assert [(each.leader_id, sorted(each.isr_nodes), each.offline_replicas) for each in others] == [
            (LEADER, [LEADER, FOLLOWER], [])
        ] * 2
        assert (failed.isr_nodes, failed.offline_replicas) == ([FOLLOWER], [LEADER])
        wire.produce_values("spread", b"1000001", partition=0)

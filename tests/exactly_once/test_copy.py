"""Consume, transform, produce: the copy is the source, each record once and in order, whatever is killed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.exactly_once.copying import PARTITIONS, SOURCE, TARGET, Copying, await_whole, fill
from tests.support.cluster_process import ClusterProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

RECORDS = 33_334
CLUSTER_RECORDS = 100_000
# Where each broker may be the one that dies, all replicas have to be in sync: with a single one, a partition
# has no leader while that one is away, and nothing is copied "by two brokers".
KEPT = (SOURCE, TARGET, "__transaction_state", "__consumer_offsets")
SETTINGS = {"transaction.state.log.num.partitions": "4", "offsets.topic.num.partitions": "4"}


def create(broker: OttlaProcess) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        for name in (SOURCE, TARGET):
            wire.create_topic(name, PARTITIONS)


@pytest.mark.parametrize("client", ["confluent", "aiokafka", "kafka-python"])
def test_one_broker_and_copiers_that_are_killed_and_come_back(tmp_path: Path, client: str) -> None:
    with OttlaProcess(SETTINGS) as broker:
        servers = broker.bootstrap_servers
        create(broker)
        fill(servers, RECORDS)
        with Copying(client, servers, "copier", tmp_path / "copiers.log") as copying:
            copying.await_copied(servers, RECORDS // 6, "a part of the copy")
            copying.kill()
            copying.await_copied(servers, RECORDS // 3, "the copy after a copier was killed")
            zombie = copying.replace()
            copying.await_copied(servers, RECORDS // 2, "the copy by another copier")
            zombie.send_signal(signal.SIGCONT)
            copying.await_copied(servers, RECORDS * 2 // 3, "the copy beside a copier that came back")
            broker.kill()
            broker.start()
            await_whole(copying, servers, RECORDS)


@pytest.mark.xdist_group("cluster")
def test_three_brokers_of_which_each_is_killed(tmp_path: Path, zookeeper: ZookeeperProcess) -> None:
    with ClusterProcess(zookeeper.address) as cluster:
        servers = cluster.bootstrap_servers
        for name in (SOURCE, TARGET):
            cluster.create_topic(name, PARTITIONS)
        fill(servers, CLUSTER_RECORDS)
        with Copying("confluent", servers, "copier", tmp_path / "copiers.log") as copying:
            for number, broker in enumerate(cluster.brokers.values(), 1):
                copying.await_copied(servers, CLUSTER_RECORDS * number // 5, "a part of the copy")
                for topic in KEPT:
                    cluster.await_full_isr(topic, 120)
                broker.kill()
                copying.await_copied(servers, CLUSTER_RECORDS * number // 5 + 2000, "the copy by two brokers")
                broker.start()
            await_whole(copying, servers, CLUSTER_RECORDS)

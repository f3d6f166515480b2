"""Outages that no session notices, with real processes."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.load import Load, await_more, check
from tests.cluster.replicas import await_identical
from tests.support.cluster_process import ClusterProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.xdist_group("cluster")

PATIENT = {"zookeeper.session.timeout.ms": "10000", "replica.lag.time.max.ms": "1000"}
"""Sessions outlive every pause here; the greatest that a tickTime of 500 ms allows."""


def create(cluster: ClusterProcess, name: str, *replicas: list[int]) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    topic = NewTopic(name, len(replicas), replica_assignment=list(replicas))
    [created] = admin.create_topics([topic]).values()
    created.result()
    cluster.await_full_isr(name)


def epochs(cluster: ClusterProcess, *topics: str) -> list[tuple[int, int]]:
    """(leader, leader epoch) of all partitions."""
    return [(each.leader_id, each.leader_epoch) for name in topics for each in cluster.partitions(name)]


def test_pauses_within_a_session_elect_nobody(zookeeper: ZookeeperProcess) -> None:
    """A paused follower leaves the ISR of a topic with load and not that of an idle one, and comes back, all
    under the same leader epoch. A paused ZooKeeper is not noticed.
    """
    with ClusterProcess(zookeeper.address, PATIENT) as cluster:
        controller = cluster.metadata().controller_id
        leader, follower = (number for number in cluster.brokers if number != controller)
        for name in ("loaded", "idle"):
            create(cluster, name, [leader, controller, follower])
        with WireClient(cluster.brokers[leader].bootstrap_servers) as wire:
            wire.produce_values("idle", b"one")
        before = epochs(cluster, "loaded", "idle")
        with Load(cluster.bootstrap_servers, "loaded", partitions=1) as load:
            await_more(load)
            with cluster.pause(cluster.brokers[follower]):
                wait_until(lambda: follower not in cluster.partitions("loaded")[0].isr_nodes, "it to leave")
                await_more(load)
                assert sorted(cluster.partitions("idle")[0].isr_nodes) == [1, 2, 3]
            cluster.await_full_isr("loaded")
            zookeeper.pause()
            try:
                await_more(load)
            finally:
                zookeeper.resume()
            await_more(load)
        cluster.await_full_isr("loaded")
        assert epochs(cluster, "loaded", "idle") == before
        assert cluster.metadata().controller_id == controller
        assert not load.failed
        check(load, cluster.bootstrap_servers)
        await_identical(cluster, "loaded", 1)

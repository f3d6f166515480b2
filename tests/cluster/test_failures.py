"""Brokers that are killed, paused and restarted under load: nothing acknowledged is lost, nothing is twice.

Lines 1-5, 9-12, 18, 20-22 and 76-77 of the list in the reference: idempotent producers with acks=all, three
replicas, two in sync at least.
"""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.load import Load, check
from tests.cluster.replicas import check_identical
from tests.support.cluster_process import ClusterProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.xdist_group("cluster")

TOPIC = "t"
PARTITIONS = 3


@pytest.fixture
def cluster(zookeeper: ZookeeperProcess):
    with ClusterProcess(zookeeper.address) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        [created] = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values()
        created.result()
        yield cluster


def await_more(load: Load, count: int = 200) -> None:
    """Wait until so many more records are acknowledged."""
    wanted = load.acks() + count
    wait_until(lambda: load.acks() >= wanted, f"{count} more acknowledged records", 60)


def settle(cluster: ClusterProcess, load: Load) -> None:
    """After the load: all in sync, everything there once; then stop all and compare the logs."""
    cluster.await_full_isr(TOPIC)
    assert not load.failed
    check(load, cluster.bootstrap_servers)
    cluster.all(OttlaProcess.stop)
    check_identical(cluster, TOPIC, PARTITIONS)


def test_a_leader_is_killed(cluster: ClusterProcess) -> None:
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        await_more(load)
        leader = cluster.leader(TOPIC)
        leader.kill()
        await_more(load, 1000)
        leader.start()
        await_more(load)
        cluster.await_full_isr(TOPIC)
    settle(cluster, load)


def test_the_controller_is_killed(cluster: ClusterProcess) -> None:
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        await_more(load)
        controller = cluster.controller()
        controller.kill()
        await_more(load, 1000)
        controller.start()
        cluster.await_full_isr(TOPIC)
    settle(cluster, load)


def test_a_broker_that_is_back_before_its_session_has_ended(cluster: ClusterProcess) -> None:
    """Kafka's exits; ours waits for the old session to end and registers then."""
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        await_more(load)
        leader = cluster.leader(TOPIC)
        leader.kill()
        leader.start()
        await_more(load, 500)
        cluster.await_full_isr(TOPIC)
    settle(cluster, load)


def test_all_are_killed_at_once(cluster: ClusterProcess) -> None:
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        await_more(load, 500)
        cluster.all(OttlaProcess.kill)
        cluster.start()
        await_more(load, 500)
        cluster.await_full_isr(TOPIC)
    settle(cluster, load)


def test_a_rolling_restart(cluster: ClusterProcess) -> None:
    """Controlled: every broker goes once, in good order, and is waited for."""
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        await_more(load)
        for broker in cluster.brokers.values():
            assert broker.stop() == 0
            broker.start()
            cluster.await_full_isr(TOPIC)
            await_more(load)
    settle(cluster, load)


def test_a_leader_is_paused_for_longer_than_its_session(cluster: ClusterProcess) -> None:
    """What it has buffered meanwhile is refused when it wakes up, and its log follows the new leader's."""
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        await_more(load)
        leader = cluster.leader(TOPIC)
        with cluster.pause(leader):
            wait_until(lambda: cluster.leader(TOPIC) is not leader, "another leader", 30)
            await_more(load, 500)
        await_more(load, 500)
        cluster.await_full_isr(TOPIC)
    settle(cluster, load)


def test_zookeeper_is_paused_and_restarted(zookeeper: ZookeeperProcess, cluster: ClusterProcess) -> None:
    """While it is away records are taken as long as nobody fails; all sessions end, and come again."""
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        await_more(load)
        zookeeper.pause()
        try:
            await_more(load, 1000)
        finally:
            zookeeper.resume()
        await_more(load, 500)
        zookeeper.kill()
        zookeeper.start()
        await_more(load, 1000)
        cluster.await_full_isr(TOPIC)
    settle(cluster, load)

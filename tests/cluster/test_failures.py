"""Brokers that are killed, paused and restarted under load: nothing acknowledged is lost, nothing is twice.

Idempotent producers with acks=all, three replicas, two in sync at least. All tests share three brokers, whom
each leaves running and in sync.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.cluster.load import Load, await_more, check
from tests.cluster.replicas import await_identical
from tests.support.cluster_process import ClusterProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.xdist_group("cluster")

PARTITIONS = 3


@pytest.fixture(scope="module")
def cluster(zookeeper: ZookeeperProcess) -> Iterator[ClusterProcess]:
    with ClusterProcess(zookeeper.address) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: ClusterProcess, request: pytest.FixtureRequest) -> str:
    """A topic of the test's own; each broker leads one partition."""
    name = request.node.name.removeprefix("test_")
    cluster.create_topic(name, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    return name


def settle(cluster: ClusterProcess, load: Load) -> None:
    """After the load: all in sync, everything there once, and on all replicas alike."""
    cluster.await_full_isr(load.topic)
    assert not load.failed
    check(load, cluster.bootstrap_servers)
    await_identical(cluster, load.topic, PARTITIONS)


def led_beside_the_controller(cluster: ClusterProcess, topic: str) -> int:
    """A partition whose leader is not the controller."""
    controller = cluster.controller()
    return next(
        each.partition_index
        for each in cluster.partitions(topic)
        if cluster.brokers.get(each.leader_id, controller) is not controller
    )


def test_a_leader_is_killed(cluster: ClusterProcess, topic: str) -> None:
    """Another member of the ISR leads its partition, under a newer leader epoch."""
    with Load(cluster.bootstrap_servers, topic) as load:
        await_more(load)
        index = led_beside_the_controller(cluster, topic)
        before = cluster.partitions(topic)[index]
        leader = cluster.brokers[before.leader_id]
        leader.kill()
        wait_until(lambda: cluster.leader_id(topic, index) not in (-1, before.leader_id), "another leader")
        after = cluster.partitions(topic)[index]
        assert after.leader_epoch > before.leader_epoch
        assert after.leader_id in before.isr_nodes
        await_more(load, 1000)
        leader.start()
        await_more(load)
        cluster.await_full_isr(topic)
    settle(cluster, load)


def test_the_controller_is_killed(cluster: ClusterProcess, topic: str) -> None:
    with Load(cluster.bootstrap_servers, topic) as load:
        await_more(load)
        controller = cluster.controller()
        controller.kill()
        await_more(load, 1000)
        controller.start()
        cluster.await_full_isr(topic)
    settle(cluster, load)


def test_a_broker_is_back_before_its_session_has_ended(cluster: ClusterProcess, topic: str) -> None:
    """Kafka's exits; ours waits for the old session to end and registers then."""
    with Load(cluster.bootstrap_servers, topic) as load:
        await_more(load)
        leader = cluster.leader(topic)
        leader.kill()
        leader.start()
        await_more(load, 500)
        cluster.await_full_isr(topic)
    settle(cluster, load)


def test_all_are_killed_at_once(cluster: ClusterProcess, topic: str) -> None:
    with Load(cluster.bootstrap_servers, topic) as load:
        await_more(load, 500)
        cluster.all(OttlaProcess.kill)
        cluster.start()
        await_more(load, 500)
        cluster.await_full_isr(topic)
    settle(cluster, load)


def test_a_rolling_restart(cluster: ClusterProcess, topic: str) -> None:
    """Controlled: every broker goes once, in good order, and is waited for."""
    with Load(cluster.bootstrap_servers, topic) as load:
        await_more(load)
        for broker in cluster.brokers.values():
            assert broker.stop() == 0
            broker.start()
            cluster.await_full_isr(topic)
            await_more(load)
    settle(cluster, load)


def test_a_leader_is_paused_for_longer_than_its_session(cluster: ClusterProcess, topic: str) -> None:
    """What has reached it meanwhile is refused when it wakes up, and its log follows the new leader's."""
    with Load(cluster.bootstrap_servers, topic) as load:
        await_more(load)
        index = led_beside_the_controller(cluster, topic)
        leader = cluster.leader(topic, index)
        with WireClient(leader.bootstrap_servers) as wire:
            wire.versions()
            with cluster.pause(leader):
                posted = [wire.post(record(topic, index, acks), 9) for acks in (1, -1)]
                wait_until(lambda: cluster.leader(topic, index) is not leader, "another leader")
                await_more(load, 500)
            for correlation_id in posted:
                answer = wire.receive(correlation_id).responses[0].partition_responses[0]
                assert answer.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT)
        await_more(load, 500)
        cluster.await_full_isr(topic)
    settle(cluster, load)


def record(topic: str, index: int, acks: int) -> m.ProduceRequest:
    """A value that no producer of the load has, and that must not be there in the end."""
    kind = m.ProduceRequest
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"-1", ())])
    data = [kind.PartitionProduceData(index=index, records=batch)]
    return kind(
        acks=acks, timeout_ms=30_000, topic_data=[kind.TopicProduceData(name=topic, partition_data=data)]
    )


def test_the_controller_is_paused_for_longer_than_its_session(cluster: ClusterProcess, topic: str) -> None:
    """Another one has the office when it wakes up; it says so, and is a follower like any other."""
    with Load(cluster.bootstrap_servers, topic) as load:
        await_more(load)
        old = cluster.controller()
        with cluster.pause(old):
            wait_until(lambda: cluster.controller() is not old, "another controller")
            await_more(load, 500)
        with WireClient(old.bootstrap_servers) as wire:
            answer = wire.send(m.ListPartitionReassignmentsRequest(timeout_ms=1000), 0)
        assert answer.error_code == ErrorCode.NOT_CONTROLLER
        cluster.await_full_isr(topic)
    settle(cluster, load)


def test_zookeeper_is_paused_and_restarted(
    zookeeper: ZookeeperProcess, cluster: ClusterProcess, topic: str
) -> None:
    """While it is away records are taken as long as nobody fails; all sessions end, and come again."""
    with Load(cluster.bootstrap_servers, topic) as load:
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
        cluster.await_full_isr(topic)
    settle(cluster, load)

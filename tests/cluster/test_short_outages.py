"""Outages that no session notices, and the way to ZooKeeper lost by one broker alone, with real processes."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.cluster.load import Load, await_more, check
from tests.cluster.replicas import await_identical
from tests.support.cluster_process import PATIENT, ClusterProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.xdist_group("cluster")

OUTLASTING = {**PATIENT, "replica.lag.time.max.ms": "1000"}
"""Sessions outlive every pause here."""


def epochs(cluster: ClusterProcess, *topics: str) -> list[tuple[int, int]]:
    """(leader, leader epoch) of all partitions."""
    return [(each.leader_id, each.leader_epoch) for name in topics for each in cluster.partitions(name)]


def test_pauses_within_a_session_elect_nobody(zookeeper: ZookeeperProcess) -> None:
    """A paused follower leaves the ISR of a topic with load and not that of an idle one, and comes back, all
    under the same leader epoch. A paused ZooKeeper is not noticed.
    """
    with ClusterProcess(zookeeper.address, OUTLASTING) as cluster:
        controller = cluster.metadata().controller_id
        leader, follower = (number for number in cluster.brokers if number != controller)
        for name in ("loaded", "idle"):
            cluster.create_topic(name, [[leader, controller, follower]])
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


def test_the_controller_loses_the_way_to_zookeeper(zookeeper: ZookeeperProcess) -> None:
    """Another one is elected, and others lead what it led. It says that it is none any more, takes nothing
    for what it led, and comes back when the way is free.
    """
    cluster = ClusterProcess(zookeeper.address)
    with ExitStack() as stack:
        chroot = cluster.connect.partition("/")[2]
        proxies = {}
        for number, broker in cluster.brokers.items():
            proxy = proxies[number] = stack.enter_context(TcpProxy(zookeeper.host, zookeeper.port))
            broker.overrides["zookeeper.connect"] = f"{proxy.address}/{chroot}"
        stack.enter_context(cluster)
        cluster.create_topic("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        with Load(cluster.bootstrap_servers, "t") as load:
            await_more(load)
            old = int(cluster.controller().overrides["broker.id"])
            led = next(each.partition_index for each in cluster.partitions("t") if each.leader_id == old)
            proxies[old].freeze()
            with cluster.unasked(cluster.brokers[old]):
                wait_until(lambda: cluster.metadata().controller_id not in (-1, old), "another controller")
                wait_until(lambda: cluster.leader_id("t", led) not in (-1, old), "another leader")
                refused_by(cluster.brokers[old], led)
                await_more(load, 500)
                proxies[old].heal()
                cluster.await_full_isr("t", 60)
            await_more(load)
        assert not load.failed
        check(load, cluster.bootstrap_servers)
        await_identical(cluster, "t", 3)


def refused_by(old: OttlaProcess, led: int) -> None:
    """It knows by itself, for nobody tells a broker that is not registered."""
    with WireClient(old.bootstrap_servers) as wire:
        listing = m.ListPartitionReassignmentsRequest(timeout_ms=1000)
        wait_until(lambda: wire.send(listing, 0).error_code == ErrorCode.NOT_CONTROLLER, "it to say so")
        batch = build_batch([Record(0, 1_700_000_000_000, None, b"-1", ())])
        answer = wire.produce("t", batch, partition=led, acks=1)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

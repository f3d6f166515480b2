"""Partitions that are moved to other brokers (lines 60 and 61 of the list in the reference)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.load import Load
from tests.support.cluster_process import ClusterProcess
from tests.support.tools import ottla_tool
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.xdist_group("cluster")

RECORDS = [b"%06d" % number + bytes(10_000) for number in range(90)]
BATCHES = 4


@pytest.fixture(scope="module")
def cluster(zookeeper: ZookeeperProcess):
    with ClusterProcess(zookeeper.address, {"min.insync.replicas": "1"}, count=4) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(cluster: ClusterProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def create(cluster: ClusterProcess, admin: AdminClient, name: str, *replicas: list[int]) -> bytes:
    """A topic with some megabytes in its first partition; returns its id."""
    [created] = admin.create_topics(
        [NewTopic(name, len(replicas), replica_assignment=list(replicas))]
    ).values()
    created.result()
    cluster.await_full_isr(name)
    with WireClient(cluster.leader(name).bootstrap_servers) as wire:
        for _ in range(BATCHES):
            wire.produce_values(name, *RECORDS, partition=0)
    return cluster.metadata(name).topics[0].topic_id


def tool(
    cluster: ClusterProcess, folder: Path, action: str, name: str, *replicas: list[int], **options
) -> str:
    """What `ottla reassign-partitions` prints of an action on the partitions of a topic."""
    path = folder / "moves.json"
    rows = [{"topic": name, "partition": i, "replicas": each} for i, each in enumerate(replicas)]
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    flags = [text for key, value in options.items() for text in (f"--{key}", value) if text is not None]
    done = ottla_tool(
        "reassign-partitions",
        *("--bootstrap-server", cluster.bootstrap_servers, f"--{action}"),
        *("--reassignment-json-file", str(path), *flags),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def replicas_of(cluster: ClusterProcess, name: str, index: int = 0) -> list[int]:
    return list(cluster.partitions(name)[index].replica_nodes)


def await_replicas(cluster: ClusterProcess, name: str, *replicas: list[int]) -> None:
    """Wait until the partitions are where they shall be, and nowhere else."""
    wait_until(
        lambda: [replicas_of(cluster, name, i) for i in range(len(replicas))] == list(replicas),
        f"{name} to be on {replicas}",
        60,
    )
    cluster.await_full_isr(name)
    for number, broker in cluster.brokers.items():
        for index, each in enumerate(replicas):
            if number not in each:
                log = broker.log_dir / f"{name}-{index}"
                wait_until(lambda log=log: not log.exists(), f"{log} to be removed", 30)


def check_records(cluster: ClusterProcess, name: str) -> None:
    """All that was produced is there."""
    with WireClient(cluster.leader(name).bootstrap_servers) as wire:
        assert wire.list_offset(name, -1).offset >= BATCHES * len(RECORDS)


def test_partitions_move_under_load(cluster: ClusterProcess, admin: AdminClient, tmp_path: Path) -> None:
    create(cluster, admin, "loaded", [1, 2, 3], [2, 3, 1], [3, 1, 2])
    with Load(cluster.bootstrap_servers, "loaded") as load:
        wait_until(lambda: load.acks() > 200, "acknowledged records", 60)
        targets = [4, 2, 3], [4, 3, 1], [4, 1, 2]
        tool(cluster, tmp_path, "execute", "loaded", *targets)
        await_replicas(cluster, "loaded", *targets)
        wanted = load.acks() + 200
        wait_until(lambda: load.acks() > wanted, "more acknowledged records", 60)
    assert not load.failed
    assert tool(cluster, tmp_path, "verify", "loaded", *targets).count("is completed.") == 3


def test_the_replication_factor_goes_down_and_up(
    cluster: ClusterProcess, admin: AdminClient, tmp_path: Path
) -> None:
    create(cluster, admin, "factor", [1, 2, 3])
    for replicas in ([2], [4, 2, 1]):
        tool(cluster, tmp_path, "execute", "factor", replicas)
        await_replicas(cluster, "factor", replicas)
        check_records(cluster, "factor")

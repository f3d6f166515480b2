"""Partitions are moved by the tool for it, under load and with throttles, and preferred leaders elected.

A throttle of some bytes a second keeps a new replica from catching up for as long as a test wants it to.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from protocol import messages as m
from tests.cluster.load import Load, check, read_all
from tests.support.cluster_process import PATIENT, ClusterProcess
from tests.support.tools import ottla_tool
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.xdist_group("cluster")

VALUES = range(-360, 0)  # no number of a load's
RECORDS = [b"%d" % value + b" " * 10_000 for value in VALUES]
PER_BATCH = 90  # a fetch of a mebibyte is let through before the throttle knows


@pytest.fixture(scope="module")
def cluster(zookeeper: ZookeeperProcess):
    with ClusterProcess(zookeeper.address, {"min.insync.replicas": "1", **PATIENT}, count=4) as cluster:
        yield cluster


def create(cluster: ClusterProcess, name: str, *replicas: list[int]) -> None:
    """A topic with some megabytes in its first partition."""
    cluster.create_topic(name, replicas)
    with WireClient(cluster.leader(name).bootstrap_servers) as wire:
        for start in range(0, len(RECORDS), PER_BATCH):
            wire.produce_values(name, *RECORDS[start : start + PER_BATCH], partition=0)


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
    )
    cluster.await_full_isr(name)
    for number, broker in cluster.brokers.items():
        for index, each in enumerate(replicas):
            if number not in each:
                log = broker.log_dir / f"{name}-{index}"
                wait_until(lambda log=log: not log.exists(), f"{log} to be removed")


def check_records(cluster: ClusterProcess, name: str) -> None:
    """All that was produced is there, in its order."""
    found = read_all(cluster.bootstrap_servers, name, 1)
    assert [value for _, value in sorted(found.items())] == list(VALUES)


def in_progress(cluster: ClusterProcess) -> list[str]:
    request = m.ListPartitionReassignmentsRequest(timeout_ms=30_000, topics=None)
    with WireClient(cluster.controller().bootstrap_servers) as wire:
        return [topic.name for topic in wire.send(request, 0).topics]


def test_partitions_move_under_load(cluster: ClusterProcess, tmp_path: Path) -> None:
    create(cluster, "loaded", [1, 2, 3], [2, 3, 1], [3, 1, 2])
    with Load(cluster.bootstrap_servers, "loaded") as load:
        wait_until(lambda: load.acks() > 200, "acknowledged records")
        targets = [4, 2, 3], [4, 3, 1], [4, 1, 2]
        tool(cluster, tmp_path, "execute", "loaded", *targets)
        await_replicas(cluster, "loaded", *targets)
        wanted = load.acks() + 200
        wait_until(lambda: load.acks() > wanted, "more acknowledged records")
    assert not load.failed
    check(load, cluster.bootstrap_servers)
    assert tool(cluster, tmp_path, "verify", "loaded", *targets).count("is completed.") == 3


def test_the_replication_factor_goes_down_and_up(cluster: ClusterProcess, tmp_path: Path) -> None:
    create(cluster, "factor", [1, 2, 3])
    for replicas in ([2], [4, 2, 1]):
        tool(cluster, tmp_path, "execute", "factor", replicas)
        await_replicas(cluster, "factor", replicas)
        check_records(cluster, "factor")


def test_a_move_is_cancelled_on_the_way(cluster: ClusterProcess, tmp_path: Path) -> None:
    create(cluster, "cancelled", [1, 2])
    tool(cluster, tmp_path, "execute", "cancelled", [4], throttle="10")
    wait_until(lambda: (cluster.brokers[4].log_dir / "cancelled-0").exists(), "the new replica")
    assert in_progress(cluster) == ["cancelled"]
    printed = tool(cluster, tmp_path, "cancel", "cancelled", [4])
    assert "Successfully cancelled partition reassignment for: cancelled-0" in printed
    await_replicas(cluster, "cancelled", [1, 2])
    check_records(cluster, "cancelled")


def test_another_target_takes_the_place_of_the_first(cluster: ClusterProcess, tmp_path: Path) -> None:
    create(cluster, "replaced", [1, 2])
    tool(cluster, tmp_path, "execute", "replaced", [4], throttle="10")
    wait_until(lambda: (cluster.brokers[4].log_dir / "replaced-0").exists(), "the new replica")
    printed = tool(cluster, tmp_path, "execute", "replaced", [3, 1], additional=None, throttle="100000000")
    assert "Successfully started partition reassignment for replaced-0" in printed
    await_replicas(cluster, "replaced", [3, 1])
    check_records(cluster, "replaced")
    assert "Clearing topic-level throttles" in tool(cluster, tmp_path, "verify", "replaced", [3, 1])


def test_a_preferred_leader_that_is_not_in_sync_is_not_elected(
    cluster: ClusterProcess,
) -> None:
    create(cluster, "elected", [1, 2])
    assert cluster.brokers[1].stop() == 0
    wait_until(lambda: cluster.partitions("elected")[0].leader_id == 2, "another leader")
    wait_until(lambda: cluster.controller() is not cluster.brokers[1], "a controller that runs")
    options = ("--bootstrap-server", cluster.brokers[2].bootstrap_servers, "--election-type", "preferred")
    one = ("--topic", "elected", "--partition", "0")
    failed = ottla_tool("leader-election", *options, *one)
    assert failed.returncode == 1
    assert "PreferredLeaderNotAvailableException" in failed.stdout
    cluster.brokers[1].start()
    cluster.await_full_isr("elected")
    done = ottla_tool("leader-election", *options, *one)
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until(lambda: cluster.partitions("elected")[0].leader_id == 1, "the preferred leader")

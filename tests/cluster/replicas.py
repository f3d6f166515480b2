"""The replicas of a cluster, compared byte by byte."""

from __future__ import annotations

from tests.support.cluster_process import ClusterProcess
from tests.support.waiting import wait_until


def log_bytes(cluster: ClusterProcess, topic: str, index: int) -> dict[int, bytes]:
    """The whole log of a partition, by broker."""
    logs: dict[int, bytes] = {}
    for broker_id, broker in cluster.brokers.items():
        files = sorted((broker.log_dir / f"{topic}-{index}").glob("*.log"))
        if files:
            logs[broker_id] = b"".join(file.read_bytes() for file in files)
    return logs


def check_identical(cluster: ClusterProcess, topic: str, partitions: int, replicas: int = 3) -> None:
    """Every replica holds the same bytes. Only once load has stopped, all are in sync, and brokers ended."""
    for index in range(partitions):
        logs = log_bytes(cluster, topic, index)
        assert len(logs) == replicas, f"{topic}-{index} lies on {sorted(logs)}"
        assert len(set(logs.values())) == 1, {broker: len(data) for broker, data in logs.items()}


def await_identical(cluster: ClusterProcess, topic: str, partitions: int, replicas: int = 3) -> None:
    """The same of brokers that run and of a topic without load, as soon as the last replica has the end."""

    def are_identical() -> bool:
        return all(len(set(log_bytes(cluster, topic, index).values())) == 1 for index in range(partitions))

    wait_until(are_identical, f"the replicas of {topic} to be alike")
    check_identical(cluster, topic, partitions, replicas)

"""Several of our brokers as processes that meet in one ZooKeeper.

    with ZookeeperProcess() as zookeeper, ClusterProcess(zookeeper.address) as cluster:
        cluster.brokers[1].kill()
        cluster.await_full_isr("topic")

Each cluster has a chroot of its own. Sessions end after 2 s; topics have three replicas and need two in sync.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType

from protocol import messages as m
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

SESSION_MS = 2000
_numbers = itertools.count(1)

SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.num.partitions": "5",
    "replica.lag.time.max.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
}

PATIENT = {"zookeeper.session.timeout.ms": "10000", "replica.lag.time.max.ms": "10000"}
"""For tests in which nobody dies: however busy the machine is, nobody is taken for dead."""


class ClusterProcess:
    """`brokers` by id. What starts and stops all of them does so at once."""

    def __init__(self, zookeeper: str, overrides: Mapping[str, str] | None = None, count: int = 3) -> None:
        self.connect = f"{zookeeper}/cluster-{next(_numbers)}"
        settings = {**SETTINGS, "zookeeper.connect": self.connect, **(overrides or {})}
        self.brokers = {
            number: OttlaProcess({"broker.id": str(number), **settings}) for number in range(1, count + 1)
        }
        self._unasked: list[OttlaProcess] = []

    def __enter__(self) -> ClusterProcess:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End them at once and remove their directories."""
        for broker in self.brokers.values():
            broker.kill()
            broker.__exit__(None, None, None)

    def start(self) -> None:
        """Start all, and wait until each knows of all."""
        self.all(OttlaProcess.start)
        wait_until(self._all_know_all, "every broker to know the others", 30)

    def all(self, action: Callable[[OttlaProcess], object]) -> None:
        """Do it with every broker, at the same time."""
        with ThreadPoolExecutor(len(self.brokers)) as pool:
            for future in [pool.submit(action, broker) for broker in self.brokers.values()]:
                future.result()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def metadata(self, topic: str | None = None) -> m.MetadataResponse:
        """As the first broker that answers sees it."""
        for broker in self.brokers.values():
            if broker.process is None or broker in self._unasked:
                continue
            try:
                with WireClient(broker.bootstrap_servers) as client:
                    return client.metadata(*([] if topic is None else [topic]))
            except OSError:
                continue
        raise AssertionError("no broker answers")

    @contextmanager
    def pause(self, broker: OttlaProcess) -> Iterator[None]:
        """Stops the process where it stands (SIGSTOP) for as long as the block lasts."""
        with self.unasked(broker):
            broker.signal(signal.SIGSTOP)
            try:
                yield
            finally:
                broker.signal(signal.SIGCONT)

    @contextmanager
    def unasked(self, broker: OttlaProcess) -> Iterator[None]:
        """Only the others are asked for metadata as long as the block lasts: this one's is old."""
        self._unasked.append(broker)
        try:
            yield
        finally:
            self._unasked.remove(broker)

    def controller(self) -> OttlaProcess:
        """The broker that is the controller."""
        return self.brokers[self.metadata().controller_id]

    def partitions(self, topic: str) -> list[m.MetadataResponse.MetadataResponsePartition]:
        """By index, as any live broker sees them."""
        [found] = self.metadata(topic).topics
        return sorted(found.partitions, key=lambda each: each.partition_index)

    def leader(self, topic: str, index: int = 0) -> OttlaProcess:
        """The broker that leads a partition; waits until one does."""
        wait_until(lambda: self.leader_id(topic, index) >= 0, f"{topic}-{index} to have a leader")
        return self.brokers[self.leader_id(topic, index)]

    def leader_id(self, topic: str, index: int = 0) -> int:
        """The id of the leader, -1 while there is none."""
        partitions = self.partitions(topic)
        return partitions[index].leader_id if partitions else -1

    def await_full_isr(self, topic: str, timeout_s: float = 30) -> None:
        """Wait until all replicas of all partitions are in sync."""

        def full() -> bool:
            partitions = self.partitions(topic)
            return bool(partitions) and all(
                each.leader_id >= 0 and sorted(each.isr_nodes) == sorted(each.replica_nodes)
                for each in partitions
            )

        wait_until(full, f"all replicas of {topic} to be in sync", timeout_s)

    def _all_know_all(self) -> bool:
        for broker in self.brokers.values():
            with WireClient(broker.bootstrap_servers) as client:
                metadata = client.metadata()
            if len(metadata.brokers) != len(self.brokers) or metadata.controller_id < 0:
                return False
        return True

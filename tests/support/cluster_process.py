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
from protocol.errors import ErrorCode
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
        wait_until(self._all_know_all, "every broker to know the others", 60)

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
        for broker in self._asked():
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
        """The broker that leads a partition as any live broker sees it; waits until there is one."""
        found: list[int] = []

        def is_known() -> bool:
            found[:] = [self.leader_id(topic, index)]
            return found[0] >= 0

        wait_until(is_known, f"{topic}-{index} to have a leader")
        return self.brokers[found[0]]

    def leader_id(self, topic: str, index: int = 0) -> int:
        """The id of the leader, -1 while there is none."""
        partitions = self.partitions(topic)
        return partitions[index].leader_id if partitions else -1

    def await_full_isr(self, topic: str, timeout_s: float = 60) -> None:
        """Wait until all replicas of all partitions are in sync, every broker that runs knows it, asked
        itself, and the leaders serve: from then on any of them may be asked about the topic.
        """
        seen: list[list[tuple[int, int]] | None] = []

        def is_full_everywhere() -> bool:
            seen[:] = [self._view(broker, topic) for broker in self._asked()]
            first = seen[0] if seen else None
            if first is None or any(view != first for view in seen):
                return False
            return all(self._serves(leader, topic, index) for index, (leader, _) in enumerate(first))

        try:
            wait_until(is_full_everywhere, f"all replicas of {topic} to be in sync", timeout_s)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; (leader, epoch) as each broker sees them: {seen}") from error

    def _asked(self) -> list[OttlaProcess]:
        """Those who run and whose answers are not old."""
        return [
            broker
            for broker in self.brokers.values()
            if broker.process is not None and broker not in self._unasked
        ]

    def _view(self, broker: OttlaProcess, topic: str) -> list[tuple[int, int]] | None:
        """(leader, leader epoch) of each partition as one broker sees them; None while one has no leader or a
        replica that is not in sync.
        """
        try:
            with WireClient(broker.bootstrap_servers) as client:
                [found] = client.metadata(topic).topics
        except OSError:
            return None
        partitions = sorted(found.partitions, key=lambda each: each.partition_index)
        for each in partitions:
            if each.leader_id < 0 or sorted(each.isr_nodes) != sorted(each.replica_nodes):
                return None
        return [(each.leader_id, each.leader_epoch) for each in partitions] or None

    def _serves(self, leader: int, topic: str, index: int) -> bool:
        """Whether a broker takes itself for the leader of a partition."""
        try:
            with WireClient(self.brokers[leader].bootstrap_servers) as client:
                return client.list_offset(topic, -1, index).error_code == ErrorCode.NONE
        except OSError:
            return False

    def _all_know_all(self) -> bool:
        for broker in self.brokers.values():
            with WireClient(broker.bootstrap_servers) as client:
                metadata = client.metadata()
            if len(metadata.brokers) != len(self.brokers) or metadata.controller_id < 0:
                return False
        return True

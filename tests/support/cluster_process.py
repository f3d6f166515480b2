"""Several of our brokers as processes that meet in one ZooKeeper.

    with ZookeeperProcess() as zookeeper, ClusterProcess(zookeeper.address) as cluster:
        cluster.create_topic("topic", [[1, 2, 3]])
        cluster.brokers[1].kill()
        cluster.await_full_isr("topic")

Each cluster has a chroot of its own. Sessions end after 2 s; topics have three replicas and need two in sync.
A busy machine may hold up a broker for that long, so its session may end at any time: what is asked of the
controller is asked again while there is none, or while it misses a broker.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any

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

PATIENT_MS = 30_000
PATIENT = {"zookeeper.session.timeout.ms": str(PATIENT_MS), "replica.lag.time.max.ms": str(PATIENT_MS)}
"""For tests in which nobody dies: however busy the machine is, nobody is taken for dead. The ZooKeeper has to
allow sessions of PATIENT_MS.
"""

NOT_YET = (
    ErrorCode.INVALID_REPLICATION_FACTOR,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""What a controller answers to a creation while it does not know of one of the brokers."""


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
        self.all(lambda broker: broker.start())
        await_acquaintance(self.brokers.values())

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
        """The broker that is the controller, as any live broker sees it; waits until there is one."""
        found: list[int] = []

        def is_known() -> bool:
            found[:] = [self.metadata().controller_id]
            return found[0] in self.brokers

        wait_until(is_known, "a controller")
        return self.brokers[found[0]]

    def ask_controller(self, request: m.Message, version: int) -> Any:
        """The controller's answer; asked again while the office changes hands."""
        answers: list[Any] = []

        def is_answered() -> bool:
            try:
                with WireClient(self.controller().bootstrap_servers) as client:
                    answers.append(client.send(request, version))
            except OSError:  # it has just died
                return False
            return ErrorCode.NOT_CONTROLLER not in _errors(answers[-1])

        wait_until(is_answered, f"the controller to answer {type(request).__name__}")
        return answers[-1]

    def create_topic(self, name: str, partitions: int | Sequence[Sequence[int]], **configs: str) -> None:
        """A topic with so many partitions, or with these replicas of each; returns when all is as
        `await_full_isr` says. Config names have _ for .
        """
        request = m.CreateTopicsRequest
        placed = [] if isinstance(partitions, int) else partitions
        topic = request.CreatableTopic(
            name=name,
            num_partitions=partitions if isinstance(partitions, int) else -1,
            replication_factor=-1,
            assignments=[
                request.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                for index, replicas in enumerate(placed)
            ],
            configs=[
                request.CreatableTopicConfig(name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ],
        )

        def is_created() -> bool:
            [result] = self.ask_controller(request(topics=[topic], timeout_ms=10_000), 5).topics
            wanted = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)  # by a request whose answer was lost
            assert result.error_code in (*wanted, *NOT_YET), result
            return result.error_code in wanted

        wait_until(is_created, f"{name} to be created")
        self.await_full_isr(name, 120)

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


def await_acquaintance(brokers: Collection[OttlaProcess]) -> None:
    """Wait until each has heard from the controller of all: topics may have replicas on all then."""

    def all_know_all() -> bool:
        for broker in brokers:
            with WireClient(broker.bootstrap_servers) as client:
                metadata = client.metadata()
            if len(metadata.brokers) != len(brokers) or metadata.controller_id < 0:
                return False
        return True

    wait_until(all_know_all, "every broker to know the others")


def _errors(answer: Any) -> list[int]:
    """Of the answer, and of its parts where they have some of their own."""
    parts = [each for name in ("topics", "responses") for each in getattr(answer, name, None) or ()]
    return [getattr(each, "error_code", ErrorCode.NONE) for each in (answer, *parts)]

"""Brokers of ours and of Apache Kafka 3.9.2 in one ZooKeeper, and what moves offices between them.

    with MixedCluster(zookeeper.address, folder) as cluster:
        cluster.make_controller(KAFKA)
        cluster.lead("topic", 0, 1)
        cluster.replace(KAFKA, kafka=False)     # on the same directory

Brokers 1 and 2 are ours at first, 3 is Kafka's.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.cluster_process import NOT_YET, SETTINGS, ClusterProcess
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

KAFKA = 3
OFFSETS = "__consumer_offsets"
STARTS = 3
ELECTED = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
NOT_ELECTED_YET = (
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,  # it is not in sync
    ErrorCode.NOT_CONTROLLER,  # Kafka's says so of each partition
)
KAFKA_SETTINGS = {"zookeeper.connection.timeout.ms": "30000"}  # else it is the session's
SESSION_MS = 6000
"""Longer than a busy machine holds up a broker: what is verified here step by step has to stand still."""


class WatchedKafka(KafkaProcess):
    """Is started again when it ends while it starts, as a service manager does.

    3.9.2 gives up, without a word, where its session with ZooKeeper ends before it is registered. On a busy
    machine that happens.
    """

    def start(self) -> None:
        for _ in range(STARTS - 1):
            try:
                return super().start()
            except RuntimeError:
                continue
        super().start()


class MixedCluster(ClusterProcess):
    """See the module. All lies below `folder`, as directories pass from one broker to the next."""

    def __init__(self, zookeeper: str, folder: Path) -> None:
        super().__init__(zookeeper, count=0)
        self._folder = folder
        self._zookeeper = KazooClient(hosts=self.connect)
        for broker_id in (1, 2, KAFKA):
            self._make(broker_id, folder / str(broker_id), kafka=broker_id == KAFKA, settings={})

    def _make(self, broker_id: int, folder: Path, *, kafka: bool, settings: Mapping[str, str]) -> None:
        settings = {
            "broker.id": str(broker_id),
            **SETTINGS,
            "zookeeper.session.timeout.ms": str(SESSION_MS),
            "zookeeper.connect": self.connect,
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "inter.broker.protocol.version": "3.9",
            **(KAFKA_SETTINGS if kafka else {}),
            **settings,
        }
        old = self.brokers.get(broker_id)
        new = WatchedKafka("3.9.2", settings, folder) if kafka else OttlaProcess(settings, folder)
        if old is not None:
            new.port = old.port
        self.brokers[broker_id] = new  # type: ignore[assignment]

    def close(self) -> None:
        self._zookeeper.stop()
        self._zookeeper.close()
        super().close()

    def is_kafka(self, broker_id: int) -> bool:
        return isinstance(self.brokers[broker_id], KafkaProcess)

    def replace(
        self,
        broker_id: int,
        *,
        kafka: bool,
        empty: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Another broker takes id and port: on the directory of the old one, or on an empty one, where it
        has to copy everything.
        """
        old = self.brokers[broker_id]
        old.stop()
        folder = self._folder / f"{broker_id}-anew" if empty else old.directory
        self._make(broker_id, folder, kafka=kafka, settings=settings or {})
        self.brokers[broker_id].start()

    @contextmanager
    def zookeeper(self) -> Iterator[KazooClient]:
        """A session of the test's own, below the cluster's chroot."""
        if not self._zookeeper.connected:
            self._zookeeper.start(60)
        yield self._zookeeper

    def controller_id(self) -> int:
        """As ZooKeeper has it; -1 while there is none."""
        with self.zookeeper() as zookeeper:
            try:
                return int(json.loads(zookeeper.get("/controller")[0])["brokerid"])
            except NoNodeError:
                return -1

    def make_controller(self, broker_id: int) -> None:
        """The others stand still for the moment of the election, which comes when the node is deleted."""
        if self.controller_id() != broker_id:
            with ExitStack() as stack:
                for other, broker in self.brokers.items():
                    if other != broker_id:
                        os.kill(broker.pid, signal.SIGSTOP)
                        stack.callback(os.kill, broker.pid, signal.SIGCONT)
                with self.zookeeper() as zookeeper, suppress(NoNodeError):
                    zookeeper.delete("/controller")
                wait_until(lambda: self.controller_id() == broker_id, f"{broker_id} to be the controller")
        for broker in self.brokers.values():
            with WireClient(broker.bootstrap_servers) as client:
                wait_until(
                    lambda client=client: client.metadata().controller_id == broker_id,
                    f"all to know controller {broker_id}",
                )

    def move(self, topic: str, index: int, replicas: list[int]) -> None:
        """Reassign a partition and wait until the move has ended."""
        reassign = m.AlterPartitionReassignmentsRequest
        partition = reassign.ReassignablePartition(partition_index=index, replicas=replicas)
        topics = [reassign.ReassignableTopic(name=topic, partitions=[partition])]

        def is_taken() -> bool:
            answer = self.ask_controller(reassign(timeout_ms=10_000, topics=topics), 0)
            error = answer.responses[0].partitions[0].error_code if not answer.error_code else -1
            assert error in (ErrorCode.NONE, *NOT_YET), answer
            return bool(error == ErrorCode.NONE)

        wait_until(is_taken, f"all of {replicas} to be known")
        listing = m.ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None)
        wait_until(lambda: self.ask_controller(listing, 0).topics == [], f"the move of {topic}")
        wait_until(
            lambda: self.partitions(topic)[index].replica_nodes == replicas, f"{topic} on {replicas}", 60
        )
        self.await_full_isr(topic, 60)

    def lead(self, topic: str, index: int, broker_id: int) -> None:
        """Make a broker the preferred leader of a partition, and elect it."""
        others = [other for other in self.partitions(topic)[index].replica_nodes if other != broker_id]
        self.move(topic, index, [broker_id, *others])
        elect = m.ElectLeadersRequest
        wanted = [elect.TopicPartitions(topic=topic, partitions=[index])]
        request = elect(election_type=0, topic_partitions=wanted, timeout_ms=10_000)

        def is_elected() -> bool:
            answer = self.ask_controller(request, 2)
            [result] = answer.replica_election_results[0].partition_result
            assert result.error_code in (*ELECTED, *NOT_ELECTED_YET), answer
            return result.error_code in ELECTED

        wait_until(is_elected, f"{broker_id} to be elected")
        wait_until(lambda: self.leader_id(topic, index) == broker_id, f"{broker_id} to lead {topic}")

    def is_gone(self, broker_id: int) -> bool:
        """Whether the controller has told of the broker's end."""
        return all(broker.node_id != broker_id for broker in self.metadata().brokers)

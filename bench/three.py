"""Three brokers of a kind that meet in one ZooKeeper: ours, or Apache Kafka 3.9.2, with the same settings.

Sessions end after 2 s (ZooKeeper's tick is 500 ms), topics have three replicas and need two in sync. All
clusters of a run share the ZooKeeper, each with a chroot of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

from bench import machine
from tests.support.cluster_process import SETTINGS, ClusterProcess
from tests.support.kafka_process import KafkaProcess
from tests.support.waiting import wait_until

KAFKA_VERSION = "3.9.2"
KAFKA_JVM = ("-Xmx1g",)
IDS = (1, 2, 3)
PATIENT = {"zookeeper.connection.timeout.ms": "30000"}  # to begin with; Kafka ends after a session's time


class Three(ClusterProcess):
    """A cluster that is measured. `kind` is "ottla" or "kafka"."""

    def __init__(self, kind: str, zookeeper: str) -> None:
        super().__init__(zookeeper, PATIENT, count=len(IDS))
        self.kind = kind
        if kind == "kafka":
            for number in IDS:
                settings = {
                    "broker.id": str(number),
                    **SETTINGS,
                    **PATIENT,
                    "zookeeper.connect": self.connect,
                }
                self.brokers[number] = KafkaProcess(  # type: ignore[assignment]
                    KAFKA_VERSION, settings, jvm_flags=KAFKA_JVM
                )

    def delete_topic(self, name: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
        admin.delete_topics([name])[name].result()

    def address(self, broker_id: int) -> tuple[str, int]:
        broker = self.brokers[broker_id]
        return broker.host, broker.port

    def cpu_seconds(self) -> Mapping[int, float]:
        """CPU time of each live broker so far."""
        return {
            number: machine.cpu_seconds(broker.pid)
            for number, broker in self.brokers.items()
            if broker.process is not None
        }

    def await_session_end(self, broker_id: int) -> None:
        """Wait until the cluster knows that a broker is gone: Kafka's would not start before."""
        wait_until(
            lambda: all(broker.node_id != broker_id for broker in self.metadata().brokers),
            f"the session of broker {broker_id} to end",
            60,
        )


def rotated(first: int) -> list[int]:
    """All brokers, that one first."""
    at = IDS.index(first)
    return [*IDS[at:], *IDS[:at]]

"""Two of our brokers and one Apache Kafka 3.9.2 in one cluster: leadership and the controller on either side.

All meet in one ZooKeeper. Under load of idempotent producers each is stopped, killed and started in turn, so
that each leads, follows and controls; nothing acknowledged is lost, nothing is twice, and the logs of all
three are the same bytes in the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.load import Load, await_more, check
from tests.cluster.replicas import check_identical
from tests.support.cluster_process import SETTINGS, ClusterProcess
from tests.support.kafka_process import KafkaProcess
from tests.support.waiting import wait_until
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("cluster")]

TOPIC = "t"
PARTITIONS = 3

KAFKA = 3


class MixedCluster(ClusterProcess):
    """Brokers 1 and 2 are ours, 3 is Apache Kafka's."""

    def __init__(self, zookeeper: str) -> None:
        super().__init__(zookeeper, count=2)
        settings = {"broker.id": str(KAFKA), **SETTINGS, "zookeeper.connect": self.connect}
        self.brokers[KAFKA] = KafkaProcess("3.9.2", settings)  # type: ignore[assignment]

    def start(self) -> None:
        self.all(lambda broker: broker.start())
        wait_until(self._all_know_all, "every broker to know the others", 60)


@pytest.fixture
def cluster(zookeeper: ZookeeperProcess) -> Iterator[MixedCluster]:
    with MixedCluster(zookeeper.address) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        [created] = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values()
        created.result()
        cluster.await_full_isr(TOPIC, 60)
        yield cluster


def settle(cluster: MixedCluster, load: Load) -> None:
    cluster.await_full_isr(TOPIC, 60)
    assert not load.failed
    check(load, cluster.bootstrap_servers)
    cluster.all(lambda broker: broker.stop())
    check_identical(cluster, TOPIC, PARTITIONS)


def test_each_is_stopped_in_turn_and_each_leads_and_controls(cluster: MixedCluster) -> None:
    controllers, leaders = set(), set()
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        for broker_id in (KAFKA, 1, 2, KAFKA, 1, 2):
            await_more(load)
            cluster.brokers[broker_id].stop()
            await_more(load, 500)
            controllers.add(cluster.metadata().controller_id)
            leaders.update(each.leader_id for each in cluster.partitions(TOPIC))
            cluster.brokers[broker_id].start()
            cluster.await_full_isr(TOPIC, 60)
    assert leaders == {1, 2, KAFKA}
    assert KAFKA in controllers
    assert len(controllers) > 1
    settle(cluster, load)


def test_each_is_killed_in_turn(cluster: MixedCluster) -> None:
    with Load(cluster.bootstrap_servers, TOPIC) as load:
        for broker_id in (KAFKA, 1, 2):
            await_more(load)
            cluster.brokers[broker_id].kill()
            await_more(load, 1000)  # longer than a session: Kafka's would not start within
            wait_until(
                lambda gone=broker_id: is_gone(cluster, gone), f"the session of {broker_id} to end", 30
            )
            cluster.brokers[broker_id].start()
            cluster.await_full_isr(TOPIC, 60)
    settle(cluster, load)


def is_gone(cluster: MixedCluster, broker_id: int) -> bool:
    return all(broker.node_id != broker_id for broker in cluster.metadata().brokers)

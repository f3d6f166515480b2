"""Two of our brokers and one Apache Kafka 3.9.2 in one cluster: offices, crashes and replacements either way.

All meet in one ZooKeeper and go on from test to test, since starting them is what takes the time. First the
coordinator of transactions changes sides, beside a copier that copies exactly once. Then a chain of events
goes over them under the load of idempotent producers and of a consumer group: nothing acknowledged is lost,
nothing is twice, no commit is forgotten, and the logs of all three are the same bytes in the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.metadata.features import SUPPORTED
from tests.cluster.group_reader import GroupReader
from tests.cluster.load import Load, await_more, check
from tests.cluster.moved_transactions import HELD, STATE, MovedTransactions, check_verification
from tests.cluster.moved_transactions import TOPIC as MOVED
from tests.cluster.replicas import await_identical, check_identical
from tests.exactly_once.copying import SOURCE, TARGET, Copying, await_whole, fill
from tests.support.mixed_cluster import KAFKA, OFFSETS, MixedCluster
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("cluster")]

TOPIC = "t"
PARTITIONS = 3
GROUP = "carried"


COPIED = 3_000  # records, before each change of the coordinator


@pytest.fixture(scope="module")
def cluster(zookeeper: ZookeeperProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MixedCluster]:
    with MixedCluster(zookeeper.address, tmp_path_factory.mktemp("mixed")) as cluster:
        yield cluster


def test_transactions_whose_coordinator_changes_sides(cluster: MixedCluster, tmp_path: Path) -> None:
    """In good order and by kill -9, with a transaction in each state."""
    servers = cluster.bootstrap_servers
    with MovedTransactions(cluster) as moved:
        for topic in (SOURCE, TARGET):
            cluster.create_topic(topic, PARTITIONS)
        kafkas_id = check_verification(cluster, "of-kafka")
        with Copying("confluent", servers, "copier", tmp_path / "copiers.log") as copying:

            def change(to: int, how: Callable[[], None]) -> None:
                moved.bring_about()
                fill(servers, COPIED)
                copying.again()
                how()
                moved.await_coordinator(to)
                moved.check_states()
                moved.finish()

            change(1, lambda: cluster.lead(STATE, 0, 1))
            check_producer_ids(cluster, kafkas_id, check_verification(cluster, "of-ours"))
            change(KAFKA, lambda: cluster.lead(STATE, 0, KAFKA))
            change(1, cluster.brokers[KAFKA].kill)
            cluster.brokers[KAFKA].start()
            cluster.await_full_isr(STATE, 60)
            cluster.lead(STATE, 0, 1)
            change(KAFKA, cluster.brokers[1].kill)
            cluster.brokers[1].start()
            await_whole(copying, servers, 4 * COPIED)
        moved.check_contents()
    await_identical(cluster, MOVED, PARTITIONS)
    await_identical(cluster, HELD, 2, replicas=2)


def check_producer_ids(cluster: MixedCluster, *given: int) -> None:
    """Both sides take blocks from one node, and no block is given twice."""
    with cluster.zookeeper() as zookeeper:
        block = json.loads(zookeeper.get("/latest_producer_id_block")[0])
    first, last = int(block["block_start"]), int(block["block_end"])
    assert (block["version"], last - first) == (1, 999)
    assert block["broker"] in cluster.brokers
    assert max(given) <= last
    assert len({each // 1000 for each in given}) == len(given)


def test_offices_crashes_and_replacements_either_way(cluster: MixedCluster) -> None:
    cluster.create_topic(TOPIC, PARTITIONS)
    servers = cluster.bootstrap_servers
    with Load(servers, TOPIC) as load, GroupReader(servers, TOPIC, GROUP) as reader:
        reader.await_commit()
        for broker_id in (KAFKA, 1):
            cluster.make_controller(broker_id)
            administer(cluster, f"under-{broker_id}")
            lead_and_coordinate(cluster, broker_id, load, reader)
        for broker_id in (KAFKA, 1):
            crash(cluster, broker_id, load)
        reader.await_commit()
        # Kafka to ours, ours to Kafka's, and back.
        await_newer_groups(cluster, 2, on=False)
        replace(cluster, KAFKA, load, kafka=False)
        await_newer_groups(cluster, 2, on=True)
        replace(cluster, 1, load, kafka=True)
        await_newer_groups(cluster, 2, on=False)
        replace(cluster, 2, load, kafka=True, empty=True)
        reader.await_commit()
        replace(cluster, KAFKA, load, kafka=True, settings={"inter.broker.protocol.version": "3.4"})
        reader.await_commit()
        replace(cluster, 1, load, kafka=False, empty=True)
        reader.await_commit()
        await_read(load, reader)
    settle(cluster, load, reader)


def administer(cluster: MixedCluster, name: str) -> None:
    """A topic is created, changed, moved and deleted, and all brokers follow."""
    cluster.create_topic(name, [[1, KAFKA], [KAFKA, 2]])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    entry = ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    [changed] = admin.incremental_alter_configs([resource]).values()
    changed.result()
    for broker_id in cluster.brokers:
        wait_until(lambda broker_id=broker_id: retention(cluster, broker_id, name) == "12345", "the change")
    with WireClient(cluster.leader(name, 0).bootstrap_servers) as client:
        client.produce_values(name, b"1", b"2")
    cluster.move(name, 0, [2, KAFKA, 1])
    cluster.move(name, 0, [KAFKA])
    cluster.move(name, 1, [1, 2])
    with WireClient(cluster.leader(name, 0).bootstrap_servers) as client:
        assert len(client.stored_batches(name)) == 1
    deletion = m.DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
    [deleted] = cluster.ask_controller(deletion, 5).responses
    assert deleted.error_code == ErrorCode.NONE, deleted
    wait_until(
        lambda: (
            not any(
                (broker.log_dir / f"{name}-{index}").exists()
                for broker in cluster.brokers.values()
                for index in range(2)
            )
        ),
        f"the logs of {name} to go",
    )


def retention(cluster: MixedCluster, broker_id: int, name: str) -> str | None:
    describe = m.DescribeConfigsRequest
    wanted = [describe.DescribeConfigsResource(resource_type=2, resource_name=name)]
    with WireClient(cluster.brokers[broker_id].bootstrap_servers) as client:
        [result] = client.send(describe(resources=wanted), 4).results
    return next((each.value for each in result.configs if each.name == "retention.ms"), None)


def lead_and_coordinate(cluster: MixedCluster, broker_id: int, load: Load, reader: GroupReader) -> None:
    """All partitions get this leader, those of the groups, too."""
    for index in range(PARTITIONS):
        cluster.lead(TOPIC, index, broker_id)
    cluster.lead(OFFSETS, 0, broker_id)
    wait_until(lambda: coordinator(cluster) == broker_id, f"{broker_id} to be the coordinator")
    await_more(load)
    reader.await_commit()


def coordinator(cluster: MixedCluster) -> int:
    with WireClient(cluster.brokers[2].bootstrap_servers) as client:
        [found] = client.send(m.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4).coordinators
    return found.node_id


def await_newer_groups(cluster: MixedCluster, broker_id: int, *, on: bool) -> None:
    """What Kafka's 3.9 does not have is served when none is there: newer groups, newer transactions."""
    with WireClient(cluster.brokers[broker_id].bootstrap_servers) as client:
        hello = m.ApiVersionsRequest(client_software_name="t", client_software_version="1")
        wanted = set(SUPPORTED) if on else set()
        wait_until(
            lambda: {each.name for each in client.send(hello, 3).finalized_features} == wanted,
            f"newer groups to be {'on' if on else 'off'}",
        )
        member = {"member_id": "A" * 22, "member_epoch": 0, "subscribed_topic_names": [TOPIC]}
        consumer = m.ConsumerGroupHeartbeatRequest(
            group_id="newer", rebalance_timeout_ms=10_000, topic_partitions=[], **member
        )
        share = m.ShareGroupHeartbeatRequest(group_id="shares", **member)
        errors = {client.send(request, 1).error_code for request in (consumer, share)}
    assert (ErrorCode.UNSUPPORTED_VERSION in errors) == (not on)
    assert len(errors) == 1 or on


def crash(cluster: MixedCluster, broker_id: int, load: Load) -> None:
    broker = cluster.brokers[broker_id]
    broker.kill()
    await_more(load)
    wait_until(lambda: cluster.is_gone(broker_id), f"the session of {broker_id} to end")
    broker.start()  # Kafka's would not start within the session
    await_all_in_sync(cluster)


def replace(cluster: MixedCluster, broker_id: int, load: Load, **how: object) -> None:
    cluster.replace(broker_id, **how)  # type: ignore[arg-type]
    await_all_in_sync(cluster)
    await_more(load)


def await_all_in_sync(cluster: MixedCluster) -> None:
    for topic in (TOPIC, OFFSETS):
        cluster.await_full_isr(topic, 90)


def await_read(load: Load, reader: GroupReader) -> None:
    """The group has read what was acknowledged until now."""
    until = load.acknowledged.copy()

    def missing() -> list[tuple[int, int]]:
        return sorted(until.keys() - reader.found.keys())

    try:
        wait_until(lambda: not missing(), "the group to read everything")
    except TimeoutError as error:
        left = missing()
        raise AssertionError(
            f"the group lacks {len(left)} of {len(until)} records, {left[:3]} ... {left[-3:]}; "
            f"it has committed {reader.committed}"
        ) from error


def settle(cluster: MixedCluster, load: Load, reader: GroupReader) -> None:
    assert not load.failed
    assert not reader.forgotten
    cluster.await_full_isr(TOPIC, 60)
    again = check(load, cluster.bootstrap_servers)
    differing = {
        place
        for place, value in reader.found.items()
        if load.acknowledged.get(place) != value and value not in load.placeless | again
    }
    assert not differing
    cluster.all(lambda broker: broker.stop())
    check_identical(cluster, TOPIC, PARTITIONS)
